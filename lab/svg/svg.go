// Package svg draws pictures that look the same everywhere: text is outlines. A viewer seldom has
// the font used for the layout, and letters of another font are cut off at the edge, or overlap.
package svg

import (
	"fmt"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	fonts "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Canvas is an SVG picture being drawn. It is used by one goroutine at a time.
type Canvas struct{ *vgsvg.Canvas }

// New returns an empty picture of that size.
func New(width, height vg.Length) Canvas { return Canvas{vgsvg.New(width, height)} }

// FillString draws text from pt on, along the baseline, with the advances and the kerning of the
// layout (fonts.Face.Width). It panics if the font cannot be read, as gonum's does.
func (c Canvas) FillString(face fonts.Face, pt vg.Point, text string) {
	var (
		buf    sfnt.Buffer
		ppem   = fixed.Int26_6(face.Face.UnitsPerEm())
		scale  = face.Font.Size / vg.Length(ppem)
		path   vg.Path
		last   sfnt.GlyphIndex
		pen    fixed.Int26_6
		inText = false
	)
	at := func(p fixed.Point26_6) vg.Point { // of a glyph, whose y points down
		return vg.Point{X: pt.X + vg.Length(pen+p.X)*scale, Y: pt.Y - vg.Length(p.Y)*scale}
	}
	for _, r := range text {
		glyph, err := face.Face.GlyphIndex(&buf, r)
		must(err)
		if inText {
			if kern, err := face.Face.Kern(&buf, last, glyph, ppem, font.HintingNone); err == nil {
				pen += kern
			}
		}
		outline, err := face.Face.LoadGlyph(&buf, glyph, ppem, nil)
		must(err)
		for i, s := range outline {
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				if i > 0 {
					path.Close()
				}
				path.Move(at(s.Args[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(at(s.Args[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(at(s.Args[0]), at(s.Args[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(at(s.Args[0]), at(s.Args[1]), at(s.Args[2]))
			}
		}
		if len(outline) > 0 {
			path.Close()
		}
		advance, err := face.Face.GlyphAdvance(&buf, glyph, ppem, font.HintingNone)
		must(err)
		pen += advance
		last, inText = glyph, true
	}
	if len(path) > 0 {
		c.Fill(path)
	}
}

func must(err error) {
	if err != nil {
		panic(fmt.Errorf("svg: a glyph: %w", err))
	}
}
