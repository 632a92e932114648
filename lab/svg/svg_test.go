package svg

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	fonts "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// TestTextIsAsWideAsItWasLaidOut checks that drawn text needs no font, and has the position of the
// layout, kerning included.
func TestTextIsAsWideAsItWasLaidOut(t *testing.T) {
	const text = "HAVE 64K, |x|H" // both ends nearly fill their advance
	face := fonts.DefaultCache.Lookup(plot.DefaultFont, 40)
	c := New(600, 200)
	c.FillString(face, vg.Point{X: 100, Y: 50}, text)
	var out strings.Builder
	if _, err := c.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<text") || strings.Contains(out.String(), "font") {
		t.Errorf("it needs a font:\n%.500s", out.String())
	}
	left, right, bottom, top := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, m := range regexp.MustCompile(`([-\d.]+),([-\d.]+)`).FindAllStringSubmatch(path(t, out.String()), -1) {
		x, y := number(t, m[1]), number(t, m[2])
		left, right, bottom, top = min(left, x), max(right, x), min(bottom, y), max(top, y)
	}
	const bearing = 1.5 // points between a letter and the ends of its advance
	if want := 100 + face.Width(text).Points(); math.Abs(left-100) > bearing || math.Abs(right-want) > bearing {
		t.Errorf("from %g to %g, want from 100 to %g", left, right, want)
	}
	if e := face.Extents(); bottom < 50-e.Descent.Points() || top > 50+e.Ascent.Points() || top < 70 {
		t.Errorf("from %g up to %g, want it on its baseline at 50", bottom, top)
	}
}

// TestNoText checks that characters without an outline draw nothing.
func TestNoText(t *testing.T) {
	face := fonts.DefaultCache.Lookup(plot.DefaultFont, 40)
	for _, text := range []string{"", "  "} {
		c := New(100, 100)
		c.FillString(face, vg.Point{}, text)
		var out strings.Builder
		if _, err := c.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "<path") {
			t.Errorf("%q: %s", text, out.String())
		}
	}
}

// path returns the data of the only path in a picture.
func path(t *testing.T, picture string) string {
	t.Helper()
	_, data, ok := strings.Cut(picture, `<path d="`)
	if !ok || strings.Contains(data, "<path") {
		t.Fatalf("not one path:\n%.500s", picture)
	}
	data, _, _ = strings.Cut(data, `"`)
	return data
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
