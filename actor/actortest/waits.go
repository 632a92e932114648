package actortest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// forEver is the virtual time without a call of the World's or a Probe's after which the test is
// taken to wait for what does not come. While there are connections there are timers: synctest
// would let time pass for ever, and go test would end everything after ten minutes.
const forEver = 24 * time.Hour

// use is called by what the test asks for. It may take d.
func (w *World) use(d time.Duration) {
	if w.over.Load() {
		panic(fmt.Sprintf("actortest: the World of %s is used after its test function has ended (w.T().Cleanup runs before that)", w.t.Name()))
	}
	w.hang.Reset(forEver + d)
}

// hangs ends the program, as synctest does when nothing goes on, and says who waits where.
func (w *World) hangs() {
	var test string
	others := []string{}
	for id, stack := range bubbleGoroutines() {
		switch _, own := w.own[id]; {
		case strings.Contains(stack, "actortest.Run.func") && strings.Contains(stack, "testing.tRunner("):
			test = stack
		case own, strings.Contains(stack, "eventlooptest.(*Poller).Wait("), strings.Contains(stack, "eventloop.(*Loop).watch("),
			strings.Contains(stack, "actortest.(*World).hangs("):
		default:
			others = append(others, stack)
		}
	}
	slices.Sort(others)
	panic(fmt.Sprintf("actortest: %s waits for ever: for %v of virtual time it has asked for nothing\n%s\n\n%s\nprobes:%s\nidentifiers:%s\n",
		w.t.Name(), forEver, test, strings.Join(others, "\n\n"), w.told(), w.identifiers()))
}

// told is what Probes have been told and nobody has read.
func (w *World) told() (all string) {
	for _, p := range w.probes {
		p.mu.Lock()
		all += fmt.Sprintf("\n\t%s: %d unread", p.pid.Id, len(p.queue)) + strings.ReplaceAll(list(p.queue), "\n", "\n\t")
		p.mu.Unlock()
	}
	return all
}

// unheard is the failures among it, which a test has to look at.
func (w *World) unheard() (all []string) {
	for _, p := range w.probes {
		p.mu.Lock()
		failures := slices.DeleteFunc(slices.Clone(p.queue), func(m message) bool { _, ok := m.msg.(rdma.Failure); return !ok })
		p.mu.Unlock()
		if len(failures) > 0 && !p.ignores {
			all = append(all, fmt.Sprintf("%s was told of %d failures that Next has not returned (Probe.Ignore, if that is right):%s",
				p.pid.Id, len(failures), list(failures)))
		}
	}
	return all
}

// Ignore says that what the Probe is told need not be read. Else a test fails at the end of which a
// failure has not been: it may have gone another way than it was meant to.
func (p *Probe) Ignore() { p.ignores = true }
