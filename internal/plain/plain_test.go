package plain

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"10.0.0.1:7":             "10.0.0.1:7",
		"Zoë, Ζωή, Зоя":          "Zoë, Ζωή, Зоя",
		"\x1b[2Jclear":           `\x1b[2Jclear`,
		"\u009b2J":               `\u009b2J`,
		"\x9b2J":                 `\x9b2J`,
		"a\r\nb\tc\x00\x7f":      `a\r\nb\tc\x00\x7f`,
		"right \u202e to left":   `right \u202e to left`,
		"wide 世 \U0001F600":      `wide \u4e16 \U0001f600`,
		"e\u0301 \u00ad \u200b ": `e\u0301 \u00ad \u200b `,
		"cut \xe4\xb8":           `cut \xe4\xb8`,
		"\ufffd":                 `\ufffd`,
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b]0;title\x07", 10)
	f.Add("\u009b2J\xff世", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		text := Text(s)
		for _, r := range text {
			if r < ' ' || r >= 0x7f && r < 0xa1 || r >= beyond {
				t.Fatalf("%q: %q has %q", s, text, r)
			}
		}
		n %= 200
		if got := Fit(text, n); utf8.RuneCountInString(got) != max(n, 0) {
			t.Fatalf("%q in %d columns: %q", text, n, got)
		}
		if got := Right(text, n); utf8.RuneCountInString(got) != max(n, 0) {
			t.Fatalf("%q in %d columns: %q", text, n, got)
		}
		var out bytes.Buffer
		if err := WriteJSON(&out, s); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || utf8.ValidString(s) && back != s {
			t.Fatalf("%q: as JSON %q is %q, %v", s, &out, back, err)
		}
		for _, b := range out.Bytes() {
			if b < ' ' && b != '\n' || b >= 0x7f {
				t.Fatalf("%q: %q has %#x", s, &out, b)
			}
		}
	})
}

func TestNumbers(t *testing.T) {
	for in, want := range map[float64]string{
		-1: "0", 0: "0", 1e-9: "<1ms", 0.0123: "12ms", 0.9996: "1.0s", 1.5: "1.5s", 59.94: "59.9s", 59.96: "0m59s", 184: "3m04s", 7500: "2h05m", 273600: "3d04h",
		200 * 86400: "200d", 1e300: ">99999", math.Inf(1): ">99999",
	} {
		if got := Duration(in); got != want {
			t.Errorf("%v s: %s, want %s", in, got, want)
		}
	}
	for in, want := range map[float64]string{-1: "<0", 0: "0", 999: "999", 1000: "1.0k", 12345: "12.3k", 999_499: "999.5k", 999_600: "1.0M", 1e30: ">999E"} {
		if got := Count(in); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
	if got := Bytes(4.5 * (1 << 20)); got != "4.5M" {
		t.Errorf("4.5 MiB: %s", got)
	}
	for _, f := range []func(float64) string{Duration, Count, Bytes} {
		if got := f(math.NaN()); got != "0" && got != "?" {
			t.Errorf("NaN: %s", got)
		}
	}
}
