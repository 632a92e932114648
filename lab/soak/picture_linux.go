package main

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/svg"
)

// picture draws every metric of the processes that live as long as the soak, and the time after
// each fault until all work continued.
func picture(file string, pairs []*pair) error {
	var plots []*plot.Plot
	for i := range metrics {
		p, err := curve(&metrics[i], pairs)
		if err != nil {
			return err
		}
		plots = append(plots, p)
	}
	after, err := recoveries(pairs)
	if err != nil {
		return err
	}
	// instead of the retained messages, of which there are hardly any
	plots[len(plots)-1] = after
	const width, height = 15 * vg.Centimeter, 8 * vg.Centimeter
	var rows [][]*plot.Plot
	for i := 0; i < len(plots); i += 2 {
		rows = append(rows, plots[i:i+2])
	}
	return svg.Tiles(file, width, height, rows)
}

func axes(y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text, p.X.Min, p.Y.Min = "minutes", y, 0, 0
	p.Add(plotter.NewGrid())
	return p
}

// curve draws one metric.
func curve(m *metric, pairs []*pair) (*plot.Plot, error) {
	p := axes(m.label())
	colour := 0
	for _, of := range pairs {
		for _, s := range []side{server, client} {
			if !of.immortal(s) {
				continue
			}
			var xy plotter.XYs
			for i := range of.rows {
				if r := &of.rows[i]; r.Side == s {
					xy = append(xy, plotter.XY{X: r.At.Minutes(), Y: m.of(r)})
				}
			}
			l, err := plotter.NewLine(xy)
			if err != nil {
				return nil, err
			}
			l.Color = plotutil.Color(colour)
			colour++
			p.Add(l)
			p.Legend.Add(fmt.Sprintf("%v, %s", s, of.Name), l)
		}
	}
	p.Y.Max *= 1.35 // room for the legend
	p.Legend.Top = true
	return p, nil
}

// recoveries draws a point for each fault.
func recoveries(pairs []*pair) (*plot.Plot, error) {
	p := axes("all work goes on, s after a fault")
	for i, of := range pairs {
		var xy plotter.XYs
		for _, r := range of.recoveries {
			xy = append(xy, plotter.XY{X: r.At.Minutes(), Y: r.After.Seconds()})
		}
		s, err := plotter.NewScatter(xy)
		if err != nil {
			return nil, err
		}
		s.Color = plotutil.Color(i)
		s.Shape = plotutil.Shape(i)
		p.Add(s)
		p.Legend.Add(of.Name, s)
	}
	p.Y.Max *= 1.35
	p.Legend.Top = true
	return p, nil
}
