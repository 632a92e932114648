package perf

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/svg"
)

// CheckPlotName returns an error for a file name with an extension that Plot does not know.
func CheckPlotName(file string) error {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".svg", ".png":
		return nil
	}
	return fmt.Errorf("%s: want .svg or .png", file)
}

const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 10 * vg.Centimeter // per kind
)

// Plot draws the results against their sizes, with latencies above bandwidths. The extension of the
// file name selects the image format.
func (r *Report) Plot(file string) error {
	var plots [][]*plot.Plot
	for _, draw := range []func() (*plot.Plot, error){r.latencies, r.bandwidths} {
		p, err := draw()
		if err != nil {
			return err
		}
		if p != nil {
			plots = append(plots, []*plot.Plot{p})
		}
	}
	if len(plots) == 0 {
		return fmt.Errorf("%s: there is nothing to draw", file)
	}
	return svg.Tiles(file, plotWidth, plotHeight, plots)
}

// latencies draws p50 and p99 of each operation. It returns nil if there are no latencies.
func (r *Report) latencies() (*plot.Plot, error) {
	p := r.plot("latency, us (send and write: half of the round trip)")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	return r.lines(p, Latency, []line{
		{"p50", func(x Result) float64 { return x.Times.P50US }},
		{"p99", func(x Result) float64 { return x.Times.P99US }},
	})
}

// bandwidths draws one line for each operation. It returns nil if there are no bandwidths.
func (r *Report) bandwidths() (*plot.Plot, error) {
	p := r.plot("bandwidth, MiB/s")
	p.Y.Min = 0
	return r.lines(p, Bandwidth, []line{{"", func(x Result) float64 { return x.Rate.MiBPerS }}})
}

func (r *Report) plot(y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, verbs level, client waits: %s", r.Device, r.Wait)
	p.X.Label.Text, p.Y.Label.Text = "bytes", y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, powers{}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	return p
}

// line describes one line that each operation has.
type line struct {
	name string
	y    func(Result) float64
}

// lines draws each operation in a different colour.
func (r *Report) lines(p *plot.Plot, kind Kind, lines []line) (*plot.Plot, error) {
	some := false
	for colour, op := range ops[1:] {
		for dashes, l := range lines {
			var xy plotter.XYs
			for _, res := range r.Results {
				if res.Op == op && res.Kind == kind {
					xy = append(xy, plotter.XY{X: float64(res.Size), Y: l.y(res)})
				}
			}
			if len(xy) == 0 {
				continue
			}
			some = true
			drawn, points, err := plotter.NewLinePoints(xy)
			if err != nil {
				return nil, err
			}
			drawn.Color, points.Color = plotutil.Color(colour), plotutil.Color(colour)
			drawn.Dashes = plotutil.Dashes(dashes)
			p.Add(drawn, points)
			p.Legend.Add(strings.TrimSpace(string(op)+" "+l.name), drawn, points)
		}
	}
	if !some {
		return nil, nil
	}
	room(p)
	return p, nil
}

// room widens the axes of a plot with only one point, or with all points at the same height.
func room(p *plot.Plot) {
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min/2, p.X.Max*2
	}
	if p.Y.Min == p.Y.Max {
		p.Y.Min, p.Y.Max = p.Y.Min/2, p.Y.Max*2
	}
}

// powers puts ticks at powers of two. If there are many, it leaves some out.
type powers struct{}

// Ticks is called by plot.
func (powers) Ticks(least, most float64) (ticks []plot.Tick) {
	const few = 12
	step := 2.0
	for most/least > math.Pow(step, few) {
		step *= 2
	}
	for x := 1.0; x <= most; x *= step {
		if x >= least {
			ticks = append(ticks, plot.Tick{Value: x, Label: bytesText(x)})
		}
	}
	return ticks
}

// decades puts ticks at 1, 2, 5, 10, 20 and so on.
type decades struct{}

// Ticks is called by plot.
func (decades) Ticks(least, most float64) (ticks []plot.Tick) {
	for ten := 0.01; ten <= most; ten *= 10 {
		for _, x := range []float64{ten, 2 * ten, 5 * ten} {
			if x >= least && x <= most {
				label := fmt.Sprintf("%.3g", x)
				if x >= 1000 {
					label = fmt.Sprintf("%.0f", x)
				}
				ticks = append(ticks, plot.Tick{Value: x, Label: label})
			}
		}
	}
	return ticks
}

func bytesText(x float64) string {
	switch {
	case x >= 1<<20:
		return fmt.Sprintf("%gM", x/(1<<20))
	case x >= 1<<10:
		return fmt.Sprintf("%gK", x/(1<<10))
	}
	return fmt.Sprintf("%g", x)
}
