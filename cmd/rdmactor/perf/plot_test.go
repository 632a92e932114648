package perf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlotNeedsNoFont checks that a picture looks the same without the font used for its layout.
func TestPlotNeedsNoFont(t *testing.T) {
	r := Report{Device: "iwarp", Wait: "block", Results: []Result{
		{Op: Send, Kind: Latency, Size: 64, Times: &Times{P50US: 10, P99US: 20}},
		{Op: Send, Kind: Latency, Size: 1 << 16, Times: &Times{P50US: 30, P99US: 60}},
		{Op: Read, Kind: Bandwidth, Size: 64, Rate: &Rate{MiBPerS: 100}},
		{Op: Read, Kind: Bandwidth, Size: 1 << 16, Rate: &Rate{MiBPerS: 1000}},
	}}
	file := filepath.Join(t.TempDir(), "p.svg")
	if err := r.Plot(file); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(picture), "<text") || strings.Contains(string(picture), "font") {
		t.Errorf("it needs a font:\n%.500s", picture)
	}
}
