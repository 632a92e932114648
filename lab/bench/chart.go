package main

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/lab/svg"
)

const (
	panelWidth  = 12 * vg.Centimeter
	panelHeight = 6 * vg.Centimeter
	perRow      = 2
)

var (
	oursColor   = color.RGBA{R: 0x1f, G: 0x77, B: 0xb4, A: 0xff}
	theirsColor = color.RGBA{R: 0xb0, G: 0xb0, B: 0xb0, A: 0xff}
)

// drawChart draws each scenario's first column: a bar for each entry, rdmactor's in colour.
func drawChart(d *measure.Document, file string) error {
	var panels []*plot.Plot
	for _, r := range d.Scenarios {
		p, err := drawPanel(r)
		if err != nil {
			return err
		}
		if p != nil {
			panels = append(panels, p)
		}
	}
	if len(panels) == 0 {
		return nil
	}
	rows := (len(panels) + perRow - 1) / perRow
	grid := make([][]*plot.Plot, rows)
	for i := range grid {
		grid[i] = make([]*plot.Plot, perRow)
		copy(grid[i], panels[i*perRow:min(len(panels), (i+1)*perRow)])
	}
	return svg.Tiles(file, panelWidth, panelHeight, grid)
}

// drawPanel draws a scenario. It returns nil if there is nothing to compare.
func drawPanel(r measure.Result) (*plot.Plot, error) {
	if r.Base == "" || len(r.Entries) == 0 {
		return nil, nil
	}
	metric := r.Columns[0]
	p := plot.New()
	p.Title.Text = r.Title
	p.X.Label.Text = metric + ", less is better"
	if strings.Contains(metric, "/s") || metric == measure.PerSecond {
		p.X.Label.Text = metric + ", more is better"
	}
	p.X.Min = 0
	p.X.Tick.Marker = short{}
	n := len(r.Entries)
	names, texts := make([]string, n), make([]string, n)
	at := make(plotter.XYs, n)
	most := 0.0
	for i, e := range r.Entries {
		// the first one is at the top
		at[n-1-i] = plotter.XY{X: e.Median(metric), Y: float64(n - 1 - i)}
		names[n-1-i], texts[n-1-i] = e.Name, " "+measure.Number(e.Median(metric))
		most = max(most, e.Median(metric))
	}
	for i, e := range r.Entries {
		bar, err := plotter.NewBarChart(plotter.Values{at[n-1-i].X}, vg.Points(10))
		if err != nil {
			return nil, err
		}
		bar.Horizontal, bar.XMin, bar.LineStyle.Width, bar.Color = true, float64(n-1-i), 0, theirsColor
		if e.Ours {
			bar.Color = oursColor
		}
		p.Add(bar)
	}
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: at, Labels: texts})
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].YAlign = draw.YCenter
	}
	labels.Offset.Y = vg.Points(1.5) // they are centred as if digits had descenders
	p.Add(labels)
	p.NominalY(names...)
	const fewest = 5 // a panel has room for at least that many bars, so that all bars are equally
	// thick
	p.Y.Max = float64(n) - 0.5
	p.Y.Min = min(-0.5, p.Y.Max-fewest)
	const room = 1.2 // room for the longest bar's number
	p.X.Max = max(most*room, math.SmallestNonzeroFloat32)
	return p, nil
}

// short marks a few round numbers: 2M, 500k.
type short struct{}

// Ticks implements plot.Ticker.
func (short) Ticks(least, most float64) []plot.Tick {
	const few = 4
	step := math.Pow(10, math.Floor(math.Log10((most-least)/few)))
	for _, by := range []float64{2, 2.5, 2} {
		if (most-least)/step > few {
			step *= by
		}
	}
	var ticks []plot.Tick
	for x := 0.0; x <= most; x += step {
		text := fmt.Sprintf("%g", x)
		switch {
		case x >= 1e6:
			text = fmt.Sprintf("%gM", x/1e6)
		case x >= 1e4:
			text = fmt.Sprintf("%gk", x/1e3)
		}
		ticks = append(ticks, plot.Tick{Value: x, Label: text})
	}
	return ticks
}
