package sides

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/states"
)

// Config is what a World needs to know of the drivers.
type Config struct {
	// Active connects, Passive listens; one driver may be both.
	Active, Passive cmid.Driver
	// Clock is the drivers' time when it is virtual; nil for devices that need the real one.
	Clock *eventlooptest.Clock
	// Address is a device's of Passive, which Active reaches.
	Address netip.Addr
	// Flavor is that device's. nil: it is asked.
	Flavor *states.Flavor
	// Patience is how long, in real time, an answer may take (0: 15 s), and Quiet how long nothing
	// has to happen until nothing will (0: 30 ms).
	Patience, Quiet time.Duration
}

// World is two drivers with a loop each, turned by the test's goroutine.
type World struct {
	*testing.T
	Config
	IWARP  bool   // the device with Address is one
	A, B   *Side  // active, passive
	Port   uint16 // of the listener that was made last
	closed bool
}

// New opens the drivers. They are closed when the test ends.
func New(t *testing.T, cfg Config) *World {
	t.Helper()
	w := &World{T: t, Config: cfg}
	w.Patience, w.Quiet = cmp.Or(cfg.Patience, 15*time.Second), cmp.Or(cfg.Quiet, 30*time.Millisecond)
	w.A = w.side("active", cfg.Active)
	w.B = w.side("passive", cfg.Passive)
	if w.Flavor == nil {
		f := w.B.flavor()
		w.Flavor = &f
	}
	w.IWARP = *w.Flavor&states.IWARP != 0
	t.Cleanup(w.Close)
	return w
}

// Side is one side: a channel on a loop.
type Side struct {
	w     *World
	name  string
	Loop  *eventloop.Loop
	d     cmid.Driver
	Ch    *cmid.Channel
	Extra *cmid.Channel // see Other
	Heard []Heard       // what nobody has asked for yet, oldest first
	Then  func(Heard)   // called with each event, when set
}

// Close ends both sides, the passive one first: the kernel may keep an identifier that connects
// until it has its answer. A second Close does nothing.
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
	for _, e := range []*Side{w.B, w.A} {
		errs = append(errs, e.Loop.Shutdown(context.Background()))
	}
	if err := errors.Join(errs...); err != nil {
		w.Error(err)
	}
}

func (w *World) side(name string, d cmid.Driver) *Side {
	w.Helper()
	e := &Side{w: w, name: name, d: d}
	cfg := eventloop.Config{Name: name}
	if w.Clock != nil {
		cfg.Clock, cfg.Poller = w.Clock, eventlooptest.NewPollerOn(w.Clock)
	}
	var err error
	if e.Loop, err = eventloop.New(cfg); err != nil {
		w.Fatal(err)
	}
	e.Ch = e.channel()
	return e
}

// channel opens the driver on the side's loop.
func (e *Side) channel() (ch *cmid.Channel) {
	e.w.Helper()
	ch, err := cmid.NewChannel(e.Loop, e.d, func(id *cmid.ID, ev cmid.Event, answers cmid.Command) {
		switch ev.(type) {
		case *cmid.Closed: // the device has taken its time to give an identifier back
			return
		case *cmid.QPFailed: // a device may say so, or leave it to the completions
			return
		}
		e.Heard = append(e.Heard, Heard{id, ev, answers, ch})
		if e.Then != nil {
			e.Then(e.Heard[len(e.Heard)-1])
		}
	})
	e.w.Must(err)
	return ch
}

// Other is another channel on the side's loop. It is opened when it is first asked for.
func (e *Side) Other() *cmid.Channel {
	e.w.Helper()
	if e.Extra == nil {
		e.Extra = e.channel()
	}
	return e.Extra
}

// SideOf is the side that an identifier was made on.
func (w *World) SideOf(id *cmid.ID) *Side {
	for _, ch := range []*cmid.Channel{w.B.Ch, w.B.Extra} {
		if ch != nil && ch.ID(id.Handle()) == id {
			return w.B
		}
	}
	return w.A
}

// flavor is that of the device with Address.
func (e *Side) flavor() states.Flavor {
	e.w.Helper()
	id := e.Bound(cmid.PortSpaceTCP, At(e.w.Address, 0))
	f := id.Flavor()
	e.w.Must(id.Destroy())
	e.Heard = nil
	return f
}
