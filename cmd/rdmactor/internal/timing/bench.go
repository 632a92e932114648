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
	createQP // inside connect
	connect
	disconnect
	destroy
	steps
)

var stepNames = [steps]string{
	"create id", "bind addr", "resolve addr", "resolve route", "create qp", "connect", "disconnect", "destroy",
}

// Plan is one run of a client.
type Plan struct {
	IDs     int
	Connect bool      // if false, identifiers are only made, bound and destroyed
	Local   cmid.Addr // to bind to; port 0 lets the device choose one for each
	Peer    cmid.Addr // to connect to
}

// identifiers makes the identifiers and sends them commands. Later it reports the outcome to the
// bench by calling recordFinished and handleEvent, on the same goroutine. It destroys an identifier
// when its connection has ended.
type identifiers interface {
	createID(i int)
	issueCommand(i int, cmd cmid.Command)
}

// bench takes the identifiers through the steps of one run. Only the loop's goroutine may use it.
type bench struct {
	Plan
	on      identifiers
	timeout time.Duration
	todo    []step
	ended   func() // called once, when the run is over

	born    time.Time
	ids     []timed
	total   [steps]span
	now     step
	due     int // identifiers with a pending answer
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

func newBench(p Plan, on identifiers, timeout time.Duration, ended func()) *bench {
	b := &bench{Plan: p, on: on, timeout: timeout, ended: ended, born: time.Now(), ids: make([]timed, p.IDs)}
	b.todo = []step{createID, bindAddr}
	if p.Connect {
		b.todo = append(b.todo, resolveAddr, resolveRoute, connect, disconnect)
	}
	b.todo = append(b.todo, destroy)
	return b
}

func (b *bench) elapsedTime() time.Duration { return time.Since(b.born) }

// advanceSteps begins the next step if the current one is over. It repeats that until a step has to
// wait for answers.
func (b *bench) advanceSteps() {
	for !b.over && b.due == 0 {
		b.total[b.now].to = b.elapsedTime() // before the first step it is overwritten later
		if len(b.todo) == 0 {
			b.over = true
			b.ended()
			return
		}
		b.now, b.todo = b.todo[0], b.todo[1:]
		b.startStep(b.now)
	}
}

// startStep starts the step on every identifier.
func (b *bench) startStep(s step) {
	b.total[s].from = b.elapsedTime()
	for i := range b.ids {
		n := &b.ids[i]
		if n.closed || n.failed && s != destroy {
			continue
		}
		n.due = true
		b.due++
		if s == destroy && n.gone {
			continue // its destruction started when its connection ended
		}
		n.at[s].from = b.elapsedTime()
		if s == createID {
			b.on.createID(i)
		} else {
			b.on.issueCommand(i, b.commandFor(s))
		}
	}
}

// commandFor makes the command for a step. Each identifier needs a separate command, because an
// answer is matched by its command.
func (b *bench) commandFor(s step) cmid.Command {
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

// handleEvent handles an identifier's event.
func (b *bench) handleEvent(i int, ev cmid.Event) {
	n := &b.ids[i]
	switch e := ev.(type) {
	case *cmid.Closed:
		b.handleClosed(n, i, e.Err)
	case cmid.Failure:
		b.failID(i, e)
	case *cmid.Disconnected:
		n.gone = true
		n.at[destroy].from = b.elapsedTime()
		switch {
		case b.now == disconnect && e.Err == nil:
			b.recordFinished(i)
		case b.now != destroy:
			b.failID(i, errorBecause("disconnected", e.Err))
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
	b.advanceSteps()
}

// errorBecause returns an error with what happened, and with the reason if that is known.
func errorBecause(what string, why error) error {
	if why == nil {
		return errors.New(what)
	}
	return fmt.Errorf("%s: %w", what, why)
}

func (b *bench) handleClosed(n *timed, i int, err error) {
	if n.closed {
		return
	}
	n.closed = true
	if b.now != destroy && !n.gone && !n.failed {
		b.failID(i, errorBecause("closed", err))
	}
	b.recordAnswered(n)
	b.answers++
	n.at[destroy].to = b.elapsedTime()
}

func (b *bench) tookIf(s step, i int) {
	if b.now == s {
		b.recordFinished(i)
	}
}

// recordFinished records that an identifier has finished the step.
func (b *bench) recordFinished(i int) {
	n := &b.ids[i]
	if !n.due {
		return
	}
	n.at[b.now].to = b.elapsedTime()
	b.answers++
	b.recordAnswered(n)
}

// recordAnswered records that no answer of an identifier is pending.
func (b *bench) recordAnswered(n *timed) {
	if n.due {
		n.due = false
		b.due--
	}
}

// failID records that an identifier has failed. It takes no further steps except the last, destroy.
func (b *bench) failID(i int, err error) {
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
		b.recordAnswered(n)
	}
}

// failPending gives up the identifiers whose answer has not come within the time limit.
func (b *bench) failPending() {
	for i := range b.ids {
		n := &b.ids[i]
		if !n.due {
			continue
		}
		b.failID(i, fmt.Errorf("no answer for %v", b.timeout))
		b.recordAnswered(n) // failID does not settle a destroy
	}
	b.advanceSteps()
}
