package sides

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/states"
)

// Config describes the drivers of a World.
type Config struct {
	// Active is the driver that connects, and Passive the one that listens. They may be the same.
	Active, Passive cmid.Driver
	// Clock is the drivers' virtual time. It is nil for devices that need real time.
	Clock *eventlooptest.Clock
	// Poller makes the loops' pollers, for drivers on simulated machines. The test then runs in a
	// bubble of testing/synctest, whose time is the drivers'.
	Poller func() eventloop.Poller
	// Address is an address of a device of Passive that Active can reach.
	Address netip.Addr
	// Flavor is the flavor of that device. If it is nil, New asks the device.
	Flavor *states.Flavor
	// Patience limits how long an answer may take in real time (0: 15 s). When nothing has happened
	// for the time Quiet, nothing more is expected (0: 30 ms).
	Patience, Quiet time.Duration
}

// World is two drivers, each with a loop that the test's goroutine turns.
type World struct {
	*testing.T
	Config
	IWARP  bool   // the device's transport is iWARP
	A, B   *Side  // active, passive
	Port   uint16 // of the last listener made
	loops  Loops
	closed bool
}

// New opens the drivers. They are closed when the test ends.
func New(t *testing.T, cfg Config) *World {
	t.Helper()
	w := &World{T: t, Config: cfg, loops: Loops{Time: cfg.Clock, Poller: cfg.Poller}}
	w.Patience, w.Quiet = cmp.Or(cfg.Patience, 15*time.Second), cmp.Or(cfg.Quiet, 30*time.Millisecond)
	w.A = w.newSide("active", cfg.Active)
	w.B = w.newSide("passive", cfg.Passive)
	if w.Flavor == nil {
		f := Probe(w, (*cmid.ID).Flavor)
		w.Flavor = &f
	}
	w.IWARP = *w.Flavor&states.IWARP != 0
	t.Cleanup(w.Close)
	return w
}

// Side is one side of a World: a channel on a loop.
type Side struct {
	w     *World
	name  string
	Loop  *eventloop.Loop
	d     cmid.Driver
	Ch    *cmid.Channel
	Extra *cmid.Channel // see Other
	Heard []Heard       // events that the test has not yet taken, oldest first
	Then  func(Heard)   // called with each event, when set
}

// Heard is an event as the channel's sink received it.
type Heard struct {
	ID      *cmid.ID
	Event   cmid.Event
	Answers cmid.Command
	ch      *cmid.Channel // the channel that delivered it
}

// Close ends both sides. The passive one is first, because the kernel may keep a connecting
// identifier until the request is answered. A second Close does nothing.
func (w *World) Close() {
	if w.closed {
		return
	}
	w.closed = true
	var errs []error
	for _, e := range []*Side{w.B, w.A} {
		errs = append(errs, e.Ch.Close())
		if e.Extra != nil {
			errs = append(errs, e.Extra.Close())
		}
	}
	if err := errors.Join(append(errs, w.loops.Shutdown())...); err != nil {
		w.Error(err)
	}
}

func (w *World) newSide(name string, d cmid.Driver) *Side {
	w.Helper()
	e := &Side{w: w, name: name, d: d}
	e.Loop = Got(w.loops.Open(name))(w)
	e.Ch = e.openChannel()
	return e
}

// openChannel opens the driver on the side's loop, and collects its events.
func (e *Side) openChannel() (ch *cmid.Channel) {
	e.w.Helper()
	ch, err := cmid.NewChannel(e.Loop, e.d, func(id *cmid.ID, ev cmid.Event, answers *cmid.Pending) {
		h := Heard{ID: id, Event: ev, ch: ch}
		if answers.Answer(ev) {
			h.Answers = answers.Command
		}
		switch ev.(type) {
		case *cmid.Closed: // the device has released an identifier late
			return
		case *cmid.QPFailed: // a device may report it, or only flush
			return
		}
		e.Heard = append(e.Heard, h)
		if e.Then != nil {
			e.Then(e.Heard[len(e.Heard)-1])
		}
	})
	e.w.Must(err)
	return ch
}

// Other returns another channel on the side's loop. The first call opens it.
func (e *Side) Other() *cmid.Channel {
	e.w.Helper()
	if e.Extra == nil {
		e.Extra = e.openChannel()
	}
	return e.Extra
}

// SideOf returns the side on which an identifier was made.
func (w *World) SideOf(id *cmid.ID) *Side {
	for _, ch := range []*cmid.Channel{w.B.Ch, w.B.Extra} {
		if ch != nil && ch.ID(id.Handle()) == id {
			return w.B
		}
	}
	return w.A
}

// Pending describes the events that the test has not yet taken.
func (e *Side) Pending() []string {
	var out []string
	for _, h := range e.Heard {
		out = append(out, fmt.Sprintf("%v(%d) on %d", h.Event.Kind(), Status(h.Event), h.ID.Handle()))
	}
	return out
}

// Status returns the status of an event, or 0 if it has none.
func Status(ev cmid.Event) int32 {
	switch ev := ev.(type) {
	case cmid.Failure:
		return ev.Base().Status
	case *cmid.Disconnected:
		return ev.Status
	}
	return 0
}

// Create makes an identifier.
func (e *Side) Create(ps cmid.PortSpace) *cmid.ID {
	e.w.Helper()
	return Got(e.Ch.CreateID(ps))(e.w)
}

// At returns an address with a port.
func At(ip netip.Addr, port uint16) cmid.Addr { return cmid.AddrFrom(ip, port) }

// Any4 returns the IPv4 wildcard with a port.
func Any4(port uint16) cmid.Addr { return cmid.AddrFrom(netip.IPv4Unspecified(), port) }

// Bound makes an identifier and binds it.
func (e *Side) Bound(ps cmid.PortSpace, a cmid.Addr) *cmid.ID {
	e.w.Helper()
	id := e.Create(ps)
	e.w.Must(id.BindAddr(a))
	return id
}

// Probe returns the result of look for an identifier that is bound to Address.
func Probe[V any](w *World, look func(*cmid.ID) V) V {
	w.Helper()
	id := w.B.Bound(cmid.PortSpaceTCP, At(w.Address, 0))
	v := look(id)
	w.Must(id.Destroy())
	w.B.Heard = nil
	return v
}

// Must ends the test if a call has failed.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Got returns the result of a call. It ends the test if the call has failed.
func Got[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
