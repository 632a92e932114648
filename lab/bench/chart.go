package main

import (
	"fmt"
	"html"
	"os"
	"strings"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// The layout of the chart, in pixels. Names end at the bars and numbers begin behind them, so that
// the widths of a viewer's letters do not matter.
const (
	panelWidth = 560
	perRow     = 2
	nameWidth  = 160
	barWidth   = 300 // of a panel's longest bar
	lineHeight = 20
)

// drawChart draws each scenario's first column: a bar for each entry, rdmactor's in colour.
func drawChart(d *measure.Document, file string) error {
	var panels strings.Builder
	n, top, height := 0, 0, 0
	for _, r := range d.Scenarios {
		if r.Base == "" || len(r.Entries) == 0 {
			continue // nothing to compare
		}
		if n%perRow == 0 {
			top = height
		}
		height = max(height, top+drawPanel(&panels, r, n%perRow*panelWidth, top))
		n++
	}
	if n == 0 {
		return nil
	}
	return os.WriteFile(file, fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, perRow*panelWidth, height, panels.String()), 0o644)
}

// drawPanel draws a scenario with its upper left corner at x, y, and returns its height.
func drawPanel(b *strings.Builder, r measure.Result, x, y int) (height int) {
	metric, best := r.Columns[0], "less"
	if strings.Contains(metric, "/s") || metric == measure.PerSecond {
		best = "more"
	}
	most := 0.0
	for _, e := range r.Entries {
		most = max(most, e.Median(metric))
	}
	line := y
	write := func(at int, style, text string) {
		fmt.Fprintf(b, "<text x=%q y=%q %s>%s</text>\n", fmt.Sprint(at), fmt.Sprint(line), style, html.EscapeString(text))
	}
	line += lineHeight
	write(x+lineHeight, `font-weight="bold"`, r.Title)
	line += lineHeight
	write(x+lineHeight, `fill="#555"`, metric+", "+best+" is better")
	for _, e := range r.Entries {
		line += lineHeight
		color, long := "#b0b0b0", 0
		if e.Ours {
			color = "#1f77b4"
		}
		if most > 0 {
			long = int(barWidth * e.Median(metric) / most)
		}
		left := x + nameWidth
		write(left-5, `text-anchor="end"`, e.Name)
		fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"14\" fill=%q/>\n", left, line-11, long, color)
		write(left+long+5, "", measure.Number(e.Median(metric)))
	}
	return line - y + lineHeight
}
