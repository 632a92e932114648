package inspect

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/rdmactor/rdmactor/states"
)

// flavors are the existing diagrams.
var flavors = map[string]states.Flavor{"": states.IWARP, "iwarp": states.IWARP, "ib": 0, "ud": states.UD}

// places are the positions of the states: column and row.
var places = map[states.State][2]int{
	states.Idle: {0, 0}, states.Bound: {1, 0}, states.AddrQuery: {2, 0}, states.AddrResolved: {3, 0}, states.RouteQuery: {4, 0},
	states.RouteResolved: {5, 0},
	states.Listening:     {0, 1}, states.AddrInfoQuery: {1, 1}, states.AddrInfoResolved: {2, 1}, states.Responded: {4, 1}, states.Connecting: {5, 1},
	states.ConnectRequested: {2, 2}, states.Accepting: {3, 2}, states.Connected: {4, 2}, states.Failed: {5, 2},
	states.Destroying: {0, 3}, states.Removed: {1, 3}, states.PeerDisconnected: {3, 3}, states.Timewait: {4, 3}, states.Disconnecting: {5, 3},
}

// The diagram's measures, in its units.
const (
	boxWidth, boxHeight = 124.0, 44.0
	columnsApart        = 156.0
	rowsApart           = 92.0
	margin              = 34.0
)

// serveDiagram draws the state machine with the number of identifiers in each state.
func (p *Page) serveDiagram(w http.ResponseWriter, r *http.Request) {
	f, ok := flavors[r.URL.Query().Get("flavor")]
	if !ok {
		p.writeError(w, &failure{http.StatusBadRequest, "the flavor is iwarp, ib or ud"})
		return
	}
	picture, err := p.viewOfSnapshot(func(s *snapshot) (any, error) { return drawStates(f, s.states), nil })(r.Context())
	if err != nil {
		p.writeError(w, err)
		return
	}
	p.writeAnswer(w, r, "image/svg+xml", picture, func(drawn any) ([]byte, error) { return []byte(drawn.(string)), nil })
}

// drawStates draws the states package's table. All texts are from this program.
func drawStates(f states.Flavor, counts map[string]int) string {
	var b strings.Builder
	width, height := 2*margin+5*columnsApart+boxWidth, 2*margin+3*rowsApart+boxHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="state machine, %v" `+
		`font-family="system-ui, sans-serif" font-size="12" fill="none" stroke="currentColor">`+"\n", width, height, f)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">` +
		`<path d="M0 0L8 4L0 8z" fill="currentColor" stroke="none"/></marker></defs>` + "\n")
	edges := states.Edges(f)
	for _, e := range edges {
		back := false
		for _, o := range edges {
			back = back || o.From == e.To && o.To == e.From
		}
		fmt.Fprintf(&b, `<path class="edge" d="%s" marker-end="url(#tip)"><title>%v → %v: %s</title></path>`+"\n",
			drawArc(places[e.From], places[e.To], back), e.From, e.To, strings.Join(e.Inputs, ", "))
	}
	for s := range states.State(states.NumStates) {
		if !states.Exists(f|states.Device, s) {
			continue
		}
		x, y := boxCentre(places[s])
		class := "state"
		if counts[s.String()] > 0 {
			class = "state some"
		}
		fmt.Fprintf(&b, `<g class="%s" data-state="%v"><title>%v: %s</title><rect x="%g" y="%g" width="%g" height="%g" rx="7"/>`+
			`<text x="%g" y="%g" text-anchor="middle" fill="currentColor" stroke="none">%v</text>`+
			`<text class="count" x="%g" y="%g" text-anchor="middle" font-weight="bold" fill="currentColor" stroke="none">%d</text></g>`+"\n",
			class, s, s, s.Meaning(), x-boxWidth/2, y-boxHeight/2, boxWidth, boxHeight, x, y-4, s, x, y+14, counts[s.String()])
	}
	for s, why := range [states.NumStates]string{states.Destroying: "from any: DestroyID", states.Removed: "from any: DeviceRemoval"} {
		if why == "" {
			continue
		}
		x, y := boxCentre(places[states.State(s)])
		fmt.Fprintf(&b, `<text class="any" x="%g" y="%g" text-anchor="middle" font-size="10" fill="currentColor" stroke="none">%s</text>`+"\n",
			x, y-boxHeight/2-6, why)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func boxCentre(place [2]int) (x, y float64) {
	return margin + boxWidth/2 + float64(place[0])*columnsApart, margin + boxHeight/2 + float64(place[1])*rowsApart
}

// drawArc draws an arc from the border of one box to that of another, around the boxes between
// them, and beside the arrow in the other direction.
func drawArc(from, to [2]int, back bool) string {
	x1, y1 := boxCentre(from)
	x2, y2 := boxCentre(to)
	long := math.Hypot(x2-x1, y2-y1)
	aside := 0.0 // of the middle of the curve's polygon, to the left of its direction
	if back {
		aside = 20
	}
	if from[1] == to[1] && max(from[0]-to[0], to[0]-from[0]) > 1 {
		aside = rowsApart * 0.98
		if from[1] > 0 {
			aside = -aside // below the row
		}
		if from[0] > to[0] {
			aside = -aside
		}
	}
	cx, cy := (x1+x2)/2+aside*(y2-y1)/long, (y1+y2)/2-aside*(x2-x1)/long
	sx, sy := borderPoint(x1, y1, cx, cy)
	ex, ey := borderPoint(x2, y2, cx, cy)
	return fmt.Sprintf("M%.1f %.1fQ%.1f %.1f %.1f %.1f", sx, sy, cx, cy, ex, ey)
}

// borderPoint returns where the line from the middle of a box to a point outside leaves the box.
func borderPoint(x, y, toX, toY float64) (float64, float64) {
	dx, dy := toX-x, toY-y
	scale := math.Inf(1)
	if dx != 0 {
		scale = boxWidth / 2 / math.Abs(dx)
	}
	if dy != 0 {
		scale = min(scale, boxHeight/2/math.Abs(dy))
	}
	scale = min(scale, 1)
	return x + dx*scale, y + dy*scale
}
