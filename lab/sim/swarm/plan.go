package swarm

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/workload"
)

// Plan is the decoded form of a seed.
type Plan struct {
	Seed     uint64
	Kind     world.Kind
	Machines int
	Config   rdma.Config // of all runtimes
	Security workload.Security
	Latency  time.Duration // of the network
	Time     time.Duration // period in which operations begin and faults happen

	parts  []part
	faults []fault
	onPath bool // a man in the middle changes messages
}

// part is a workload of a plan.
type part struct {
	kind  *workload.Kind
	name  string
	verbs []string
	ops   []workload.Op
	port  int
}

// Draw draws a plan. If names are given, only these workloads take part. All names must be Known.
func Draw(seed uint64, only ...string) *Plan {
	r := newRand(seed, "plan")
	p := &Plan{Seed: seed, Kind: drawKind(r), Machines: 2 + r.IntN(3)}
	p.Time = drawBetween(r, 200*time.Millisecond, 10*time.Second)
	p.Latency = drawBetween(r, 0, 20*time.Millisecond)
	p.Config = drawConfig(newRand(seed, "limits"), p.Kind)
	p.Security = drawSecurity(newRand(seed, "security"))
	p.faults = drawFaults(newRand(seed, "faults"), p)
	if p.onPath = p.isAttackable(); p.onPath {
		p.faults = append(p.faults, drawAttacks(newRand(seed, "attacks"), p)...)
	}
	usable := chooseKinds(only)
	for n := range drawPartCount(r) {
		p.parts = append(p.parts, p.drawPart(n, usable[r.IntN(len(usable))]))
	}
	return p
}

// newRand returns the random numbers of one concern, so that draws for one concern do not affect
// others.
func newRand(seed uint64, concern string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(concern)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// drawKind draws the devices: half of the worlds use the embedded one.
func drawKind(r *rand.Rand) world.Kind {
	all := [...]world.Kind{
		world.Embedded, world.Embedded, world.Embedded, world.Twin, world.TwinSoftRoCE, world.TwinSIW,
	}
	return all[r.IntN(len(all))]
}

// drawPartCount draws the number of workloads.
func drawPartCount(r *rand.Rand) int {
	all := [...]int{1, 1, 1, 1, 2, 2, 3}
	return all[r.IntN(len(all))]
}

// drawPart draws a workload.
func (p *Plan) drawPart(n int, k *workload.Kind) part {
	name := fmt.Sprintf("%s %d", k.Name, n+1)
	r := newRand(p.Seed, name)
	x := part{kind: k, name: name, verbs: drawSubset(r, k.Verbs), port: 7000 + 100*n}
	d := workload.Draw{
		Rand: r, Has: map[string]bool{}, Machines: p.Machines, Device: p.Kind, Time: p.Time,
	}
	for _, v := range x.verbs {
		d.Has[v] = true
	}
	x.ops = k.Draw(d, drawBetween(r, 2, 16))
	return x
}

// drawSubset draws a subset of the names, at least one of them, in their order.
func drawSubset(r *rand.Rand, names []string) (all []string) {
	if r.IntN(4) == 0 {
		return names
	}
	for _, n := range names {
		if r.IntN(2) == 0 {
			all = append(all, n)
		}
	}
	if len(all) == 0 && len(names) > 0 {
		all = append(all, names[r.IntN(len(names))])
	}
	return all
}

// drawBetween draws a number between low and high, small ones more often than large ones. Times
// above a millisecond are truncated to whole milliseconds.
func drawBetween[T ~int | ~int64](r *rand.Rand, low, high T) T {
	for high > 2*low && r.IntN(2) == 0 {
		high /= 2
	}
	n := low + T(r.Int64N(int64(max(high-low, 1))))
	if d, ok := any(n).(time.Duration); ok && d > time.Millisecond {
		return T(d.Truncate(time.Millisecond))
	}
	return n
}

// Item is a part that may be left out of a plan.
type Item struct {
	N    int // from 1
	Text string
}

// Items lists the workloads with their operations, and the faults. The number of an item does not
// depend on items that were left out.
func (p *Plan) Items() (all []Item) {
	p.keepItems(func(n int, text string) bool {
		if text != "" {
			all = append(all, Item{n, text})
		}
		return true
	})
	return all
}

// Without permanently removes items.
func (p *Plan) Without(items []int) {
	p.keepItems(func(n int, _ string) bool { return !slices.Contains(items, n) })
}

// keepItems calls keep for all items, and removes those for which it returns false. Removed items
// have an empty text.
func (p *Plan) keepItems(keep func(n int, text string) bool) {
	n := 0
	next := func(text string) bool {
		n++
		return keep(n, text)
	}
	for i := range p.parts {
		x := &p.parts[i]
		if !next(x.partText()) {
			x.kind = nil
		}
		for j, op := range x.ops {
			text := ""
			if op != nil && x.kind != nil {
				text = x.name + ": " + op.String()
			}
			if !next(text) {
				x.ops[j] = nil
			}
		}
	}
	for i := range p.faults {
		f := &p.faults[i]
		text := ""
		if f.kind != nil {
			text = fmt.Sprintf("fault: at %v %v", f.at, f)
		}
		if !next(text) {
			f.kind = nil
		}
	}
}

func (x *part) partText() string {
	if x.kind == nil {
		return ""
	}
	return fmt.Sprintf("%s, with %v", x.name, x.verbs)
}

// Words describes the plan for people. Numbers are those of Items.
func (p *Plan) Words() string {
	var s strings.Builder
	fmt.Fprintf(&s, "seed %d: %d machines, device: %v, time: %v, latency: %v\n",
		p.Seed, p.Machines, p.Kind, p.Time, p.Latency)
	fmt.Fprintf(&s, "each runtime: %s\n", limitsText(p.Config))
	fmt.Fprintf(&s, "security: %v\n", p.Security)
	for _, i := range p.Items() {
		fmt.Fprintf(&s, "%5d  %s\n", i.N, i.Text)
	}
	return s.String()
}
