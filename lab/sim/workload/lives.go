package workload

import (
	"fmt"
	"time"
)

// Lives is the workload of runtimes that come and go in lasting processes: each listens, dials
// others, and shuts down while connections are being established and used.
var Lives = &Kind{
	Name:  "lives",
	Verbs: lifeVerbs,
	Draw:  drawLives,
	New:   newLives,
}

// Activities of a life besides its listener. Each is the name of a verb.
const (
	lifeRedial = "redial" // there is room for no more than the owners that dial again on Closed
	lifeLink   = "link"   // reconnecting actors, whose owners may be off the loops
)

var lifeVerbs = []string{lifeRedial, lifeLink}

// lifeOp is a life.
type lifeOp struct {
	start
	number int
	span   time.Duration // how long until it shuts down
	has    []string
	off    bool          // the listener's owner is off the loops
	late   time.Duration // delay before Accept
	dials  int           // owners that dial, or reconnecting actors
	to     int           // number of the life that it dials
	rest   time.Duration // how long a connection is used
	cut    time.Duration // how long Shutdown may take; 0: no limit
}

func (o *lifeOp) String() string {
	s := fmt.Sprintf("at %v machine %d: runtime %d for %v, with %v", o.at, o.machine+1, o.number, o.span, o.has)
	s += fmt.Sprintf(", off the loops: %v, accepts after %v; %d dial runtime %d, each for %v", o.off, o.late, o.dials, o.to, o.rest)
	if o.cut > 0 {
		s += fmt.Sprintf("; has %v to shut down", o.cut)
	}
	return s
}

func drawLives(d Draw, n int) (ops []Op) {
	lives := max(n/2, 2)
	for i := range lives {
		o := &lifeOp{
			start: start{d.upTo(d.Time / 4), i % d.Machines}, number: i, span: d.upTo(d.Time), off: d.IntN(2) == 0,
			dials: d.IntN(4), to: d.IntN(lives), rest: d.upTo(200 * time.Millisecond),
		}
		if d.IntN(4) == 0 {
			o.late = d.upTo(oneOf(d.Rand, 20*time.Millisecond, 12*time.Second))
		}
		if d.IntN(3) == 0 {
			o.rest = d.upTo(time.Minute)
		}
		if d.IntN(4) == 0 {
			o.span = d.upTo(time.Minute)
		}
		if d.IntN(4) == 0 {
			o.cut = d.upTo(2 * time.Second)
		}
		for _, v := range lifeVerbs {
			if d.Has[v] && d.IntN(2) == 0 {
				o.has = append(o.has, v)
			}
		}
		ops = append(ops, o)
	}
	return ops
}
