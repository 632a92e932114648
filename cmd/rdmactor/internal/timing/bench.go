package timing

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
)

// step is one of cmtime's phases.
type step uint8

const (
	createID step = iota
	bindAddr
	resolveAddr
	resolveRoute
	createQP
	connect
	disconnect
	destroy
	steps
)

var stepNames = [steps]string{
	"create id", "bind addr", "resolve addr", "resolve route", "create qp", "connect", "disconnect", "destroy",
}

// level makes the identifiers and sends them commands. It reports the outcome to the bench by
// calling made and event. It does so on the same goroutine, and possibly before the call returns.
type level interface {
	create(i int)
	createQP(i int)
	ask(i int, cmd cmid.Command)
	// endsItself reports whether the level destroys an identifier automatically when its connection
	// has ended.
	endsItself() bool
}

// bench takes the identifiers through the steps of one run. Only its level's goroutine may use it.
type bench struct {
	Plan
	level   level
	timeout time.Duration
	todo    []step
	ended   func() // called once, when the run is over

	born    time.Time
	ids     []timed
	total   [steps]span
	now     step
	due     int  // identifiers with a pending answer
	begun   bool // the first step has started
	asking  bool
	answers int // number of answers so far
	errors  int
	first   error
	over    bool
}

// span is the start and end of an interval, relative to the start of the run.
type span struct{ from, to time.Duration }

// timed is an identifier with the times of its steps.
type timed struct {
	at     [steps]span
	due    bool
	failed bool
	gone   bool // its connection has ended
	closed bool
}

func newBench(p Plan, l level, timeout time.Duration, qpApart bool, ended func()) *bench {
	b := &bench{Plan: p, level: l, timeout: timeout, ended: ended, born: time.Now(), ids: make([]timed, p.IDs)}
	b.todo = []step{createID, bindAddr}
	if p.Connect {
		b.todo = append(b.todo, resolveAddr, resolveRoute)
		if qpApart {
			b.todo = append(b.todo, createQP)
		}
		b.todo = append(b.todo, connect, disconnect)
	}
	b.todo = append(b.todo, destroy)
	return b
}

func (b *bench) clock() time.Duration { return time.Since(b.born) }

// advance begins the next step if the current one is over. It repeats that until a step has to wait
// for answers.
func (b *bench) advance() {
	for !b.over && !b.asking && b.due == 0 {
		if b.begun {
			b.total[b.now].to = b.clock()
		}
		b.begun = true
		if len(b.todo) == 0 {
			b.over = true
			b.ended()
			return
		}
		b.now, b.todo = b.todo[0], b.todo[1:]
		b.take(b.now)
	}
}

// take starts the step on every identifier.
func (b *bench) take(s step) {
	b.asking = true
	b.total[s].from = b.clock()
	for i := range b.ids {
		n := &b.ids[i]
		if n.closed || n.failed && s != destroy {
			continue
		}
		n.due = true
		b.due++
		if s == destroy && n.gone && b.level.endsItself() {
			continue // its destruction started when its connection ended
		}
		n.at[s].from = b.clock()
		switch s {
		case createID:
			b.level.create(i)
		case createQP:
			b.level.createQP(i)
		default:
			b.level.ask(i, b.command(s))
		}
	}
	b.asking = false
}

// command makes the command for a step. Each identifier needs a separate command, because an answer
// is matched by its command.
func (b *bench) command(s step) cmid.Command {
	switch s {
	case bindAddr:
		return &cmid.BindAddr{Addr: b.Local}
	case resolveAddr:
		return &cmid.ResolveAddr{Dst: b.Peer, Timeout: b.timeout}
	case resolveRoute:
		return &cmid.ResolveRoute{Timeout: b.timeout}
	case connect:
		const retries = 2 // as in cmtime
		return &cmid.Connect{Param: &cmid.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: retries}}
	case disconnect:
		return &cmid.Disconnect{}
	}
	return &cmid.DestroyID{}
}

// made ends a step that has no event: the creation of an identifier or its queue pair. err is not
// nil if that has failed.
func (b *bench) made(i int, err error) {
	if err != nil {
		b.fail(i, err)
		return
	}
	b.took(i)
}

// event handles an identifier's event.
func (b *bench) event(i int, ev cmid.Event) {
	n := &b.ids[i]
	switch e := ev.(type) {
	case *cmid.Closed:
		b.closed(n, i, e.Err)
	case cmid.Failure:
		b.fail(i, e)
	case *cmid.Disconnected:
		n.gone = true
		n.at[destroy].from = b.clock()
		switch {
		case b.now == disconnect && e.Err == nil:
			b.took(i)
		case b.now != destroy:
			b.fail(i, because("disconnected", e.Err))
		}
	case *cmid.Bound:
		b.tookIf(bindAddr, i)
	case *cmid.AddrResolved:
		b.tookIf(resolveAddr, i)
	case *cmid.RouteResolved:
		b.tookIf(resolveRoute, i)
	case *cmid.Established:
		b.tookIf(connect, i)
	}
	b.advance()
}

// because returns an error with what happened, and with the reason if that is known.
func because(what string, why error) error {
	if why == nil {
		return errors.New(what)
	}
	return fmt.Errorf("%s: %w", what, why)
}

func (b *bench) closed(n *timed, i int, err error) {
	if n.closed {
		return
	}
	n.closed = true
	if b.now != destroy && !n.gone && !n.failed {
		b.fail(i, because("closed", err))
	}
	b.settle(n)
	b.answers++
	n.at[destroy].to = b.clock()
}

func (b *bench) tookIf(s step, i int) {
	if b.now == s {
		b.took(i)
	}
}

// took records that an identifier has finished the step.
func (b *bench) took(i int) {
	n := &b.ids[i]
	if !n.due {
		return
	}
	n.at[b.now].to = b.clock()
	b.answers++
	b.settle(n)
}

// settle records that no answer of an identifier is pending.
func (b *bench) settle(n *timed) {
	if n.due {
		n.due = false
		b.due--
	}
}

// fail records that an identifier has failed. It takes no further steps except the last, destroy.
func (b *bench) fail(i int, err error) {
	n := &b.ids[i]
	if n.failed {
		return
	}
	n.failed = true
	b.errors++
	if b.first == nil {
		b.first = fmt.Errorf("%s, identifier %d of %d: %w", stepNames[b.now], i+1, len(b.ids), err)
	}
	if b.now != destroy {
		b.settle(n)
	}
}

// stall gives up the identifiers with a pending answer, because no answer came within the time
// limit.
func (b *bench) stall() {
	for i := range b.ids {
		n := &b.ids[i]
		if !n.due {
			continue
		}
		b.fail(i, fmt.Errorf("no answer for %v", b.timeout))
		b.settle(n) // fail does not settle a destroy
	}
	b.advance()
}
