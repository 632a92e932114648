package svg

import (
	"errors"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Tiles draws rows of plots, width by height each, into a file: a PNG if its name ends so. A row
// has as many places as the first; a nil plot leaves its place empty.
func Tiles(file string, width, height vg.Length, rows [][]*plot.Plot) error {
	const gap = 4 * vg.Millimeter
	tiles := draw.Tiles{
		Rows: len(rows), Cols: len(rows[0]), PadX: gap, PadY: gap, PadLeft: gap, PadRight: gap, PadTop: gap, PadBottom: gap,
	}
	width, height = width*vg.Length(tiles.Cols), height*vg.Length(tiles.Rows)
	var canvas vg.CanvasWriterTo = New(width, height)
	if strings.EqualFold(filepath.Ext(file), ".png") {
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
	}
	whole := draw.New(canvas)
	whole.SetColor(color.White) // the viewer's page may be dark
	whole.Fill(whole.Path())
	for i, places := range plot.Align(rows, tiles, whole) {
		for j, place := range places {
			if rows[i][j] != nil {
				rows[i][j].Draw(place)
			}
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}
