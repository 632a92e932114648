package datapath

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// tap is a queue pair that notes whether its peer's messages come.
type tap struct {
	verbs.Pauser
	shut    bool
	resumed int
}

func (p *tap) Pause(on bool) {
	p.shut = on
	if !on {
		p.resumed++
	}
}

// paperShares returns an account of so many bytes, whose turns the test takes.
func paperShares(t *testing.T, bytes int) *shares {
	el, err := eventloop.New(eventloop.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = el.Shutdown(t.Context()) })
	l := &Loop{el: el}
	l.RecvBudget = memory.NewBudget(l.el, 2*bytes, bytes/2, bytes)
	l.Shares = shares{l: l, limit: bytes}
	return &l.Shares
}

// holder returns a connection whose owner holds messages of so many bytes.
func (s *shares) holder(m Mode, bytes ...int) (c *Conn, p *tap, held []*memory.Chunk) {
	p = new(tap)
	c = &Conn{l: s.l, terms: Terms{Mode: m}, state: connOpen, Session: wire.NewSession(4)}
	c.Out.c, c.In.c, c.In.qp = c, c, p
	for _, n := range bytes {
		b := &memory.Chunk{SGE: verbs.SGE{Length: uint32(n)}}
		s.countReceived(c, b, 1)
		held = append(held, b)
	}
	s.pauseIfOver(c)
	return c, p, held
}

// A connection that is paused while a Read of ours may be behind its messages goes on as soon as
// there is anything but the reserve, however much it holds itself, and however much others wait
// for.
func TestReadGoesOnWhenThereIsRoom(t *testing.T) {
	const all = 1 << 20
	for name, late := range map[string]bool{"paused with the Read": false, "paused before": true} {
		t.Run(name, func(t *testing.T) {
			s := paperShares(t, all)
			_, _, first := s.holder(ModeMessages, all/4)
			reader, tap, _ := s.holder(ModeMessages, all/8)
			if !late {
				reader.In.countFetching(&OneSided{Op: verbs.Read}, 1)
			}
			_, greedy, _ := s.holder(ModeMessages, all/8)
			s.pauseIfOver(reader)
			if late {
				reader.In.countFetching(&OneSided{Op: verbs.Read}, 1)
			}
			if !tap.shut || !greedy.shut {
				t.Fatalf("with %d bytes left one is paused: %t, the other: %t", s.unreservedBytes(), tap.shut, greedy.shut)
			}
			s.countReturned(&Conn{l: s.l}, &memory.Chunk{}) // somebody else's, of no size
			if s.Run(eventloop.RunBudget); !tap.shut {
				t.Fatal("it goes on without room")
			}
			s.Held -= first[0].Size() / 8
			s.scheduleResume()
			if !s.queued {
				t.Fatal("nobody is looked after although there is room for a Read's answer")
			}
			if s.Run(eventloop.RunBudget); tap.shut {
				t.Error("the Read does not go on although there is room")
			}
			if !greedy.shut {
				t.Error("another goes on that holds more than is left")
			}
		})
	}
}

// An owner has nothing, because what its connection has received waits behind a large message. The
// Read of that is answered behind further messages, so these are received also when others have all
// that is shared: each such connection may have as much as it leaves of a quarter besides the
// floors, or all but a sixteenth.
func TestReadGoesOnWhenTheOwnerHasNothing(t *testing.T) {
	const all, one = 1 << 20, 1 << 13
	for _, owed := range []int{0, all / 4, 3 * all / 8} {
		s := paperShares(t, all)
		s.l.NewInbound = func() *Inbound { return new(Inbound) }
		_, greedy, _ := s.holder(ModeMessages, all/2)
		s.Owed = owed
		var first *Conn
		for i := range 3 {
			reader, tap, _ := s.holder(ModeMessages)
			reader.Session, reader.In.Arrivals = wire.NewSession(all), &arrivals{c: reader}
			reader.In.countFetching(&OneSided{Op: verbs.Read}, 1)
			for !tap.shut {
				if err := reader.Session.Take(wire.Header{Type: wire.TypeData}); err != nil {
					t.Fatal(err)
				}
				reader.In.queueMessage(reader.In.fillInbound(&memory.Chunk{SGE: verbs.SGE{Length: one}}, nil), wire.Offer{})
				s.pauseIfOver(reader)
			}
			has, left := reader.In.bytes, s.freeBytes()-max(all/4, owed)
			if most := min(has, all/16); left < most-2*one || left >= most {
				t.Errorf("with %d bytes owed to others, reader %d has %d bytes when %d are left", owed, i, has, left)
			}
			if first == nil {
				first = reader
			}
		}
		if s.Run(eventloop.RunBudget); !first.In.paused || !greedy.shut {
			t.Errorf("with %d bytes owed to others it goes on without memory", owed)
		}
		s.Held -= all / 4
		s.scheduleResume()
		if s.Run(eventloop.RunBudget); first.In.paused || !greedy.shut {
			t.Errorf("with memory again one is paused: %t, the greedy one: %t", first.In.paused, greedy.shut)
		}
		s.Held += all / 4
		if first.In.Arrivals.pop(); s.mayReceive(first) {
			t.Error("one whose owner has a message is read although others have all that is shared")
		}
	}
}

// A connection whose Read is behind a bundle may be looked at when a part of the bundle was
// delivered, because its owner sends something. It does not look then as if its owner had the rest:
// afterwards it goes on with the same memory as before.
func TestReadGoesOnBehindABundle(t *testing.T) {
	const all, one = 1 << 20, 1 << 13
	s := paperShares(t, all)
	s.l.NewInbound = func() *Inbound { return new(Inbound) }
	s.holder(ModeMessages, all/2)
	reader, tap, _ := s.holder(ModeMessages)
	reader.Session, reader.In.Arrivals = wire.NewSession(all), &arrivals{c: reader}
	reader.In.countFetching(&OneSided{Op: verbs.Read}, 1)
	arrive := func() {
		reader.In.queueMessage(reader.In.fillInbound(&memory.Chunk{SGE: verbs.SGE{Length: one}}, nil), wire.Offer{})
	}
	for !tap.shut {
		if err := reader.Session.Take(wire.Header{Type: wire.TypeData}); err != nil {
			t.Fatal(err)
		}
		arrive()
		s.pauseIfOver(reader)
	}
	if err := reader.Session.TakeBundle(wire.Header{Type: wire.TypeBundle}, 2); err != nil {
		t.Fatal(err)
	}
	arrive()
	s.resumeOrWait(reader)
	arrive()
	s.pauseIfOver(reader)
	s.Held -= 8 * one
	s.scheduleResume()
	if s.Run(eventloop.RunBudget); tap.shut || s.unreservedBytes() > 0 {
		t.Errorf("with room for %d bytes it is paused: %t", s.unreservedBytes(), tap.shut)
	}
}

// An owner retains nearly all that it may have, and gives back what is more. It gets the next
// message: it must not have to give back more than that, which it may never do.
func TestShareGoesOn(t *testing.T) {
	const all = 1 << 20
	s := paperShares(t, all)
	c, tap, held := s.holder(ModeMessages, 15*all/64, all/32)
	if !tap.shut {
		t.Fatal("it is not paused at its share")
	}
	s.countReturned(c, held[1])
	if turns(t, s); tap.shut {
		t.Errorf("it does not go on with %d bytes, where %d are left for all others", c.In.bytes, s.unreservedBytes())
	}
}

// What thousands of connections are paused for costs a message of another's nothing.
func TestPausedCostNothing(t *testing.T) {
	const all, conns = 64 << 20, 5000
	s := paperShares(t, all)
	taps := make([]*tap, 2*conns)
	for i := range conns { // as many messages as it may have, of a peer without credits
		_, taps[i], _ = s.holder(ModeForeign, 1, 1, 1, 1)
	}
	good, _, _ := s.holder(ModeMessages)
	b := &memory.Chunk{SGE: verbs.SGE{Length: 100}}
	s.countReceived(good, b, 1)
	if s.countReturned(good, b); s.queued {
		t.Error("connections that wait for messages of their own are looked after when another's is given back")
	}
	held, _, hoard := s.holder(ModeMessages, s.unreservedBytes())
	for i := range conns {
		_, taps[conns+i], _ = s.holder(ModeMessages, 1, 1)
	}
	resumed := func() (n int) {
		for _, p := range taps {
			n += p.resumed
		}
		return n
	}
	s.countReturned(held, hoard[0])
	turns := 0
	for before := 0; s.queued; turns++ {
		s.Run(eventloop.RunBudget)
		if n := resumed(); n > before+eventloop.RunBudget {
			t.Fatalf("%d connections go on in one turn", n-before)
		} else {
			before = n
		}
	}
	if n := resumed(); n != conns {
		t.Errorf("%d connections go on, in %d turns, of %d for which there is room", n, turns, conns)
	}
}

// keeper retains what it has got.
type keeper struct{ Identifier }

func (keeper) Idle() bool { return true }

// A peer without credits, of whose window the owner retains more than half, goes on as soon as
// there is memory. It must not wait for the owner, who may never give anything back.
func TestWindowGoesOnWhenThereIsMemory(t *testing.T) {
	const all, size = 1 << 20, 1 << 15
	for _, tt := range []struct {
		name    string
		retains int // of 4
		gives   bool
		then    bool // when memory is short
	}{
		{"paused for memory", 3, false, false},
		{"a message comes back when memory is short", 4, false, true},
		{"memory is short when it is about to go on", 4, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := paperShares(t, all)
			var others int
			if tt.retains < 4 {
				others = s.unreservedBytes() - tt.retains*size
				s.Held += others
			}
			c, tap, held := s.holder(ModeRaw, slices.Repeat([]int{size}, tt.retains)...)
			c.identifier = keeper{}
			if tt.gives {
				s.countReturned(c, held[0])
			}
			others += s.unreservedBytes()
			s.Held += s.unreservedBytes()
			if tt.then {
				s.countReturned(c, held[0])
			}
			turns(t, s)
			if !tap.shut {
				t.Fatal("it goes on without memory")
			}
			s.Held -= others
			s.scheduleResume()
			turns(t, s)
			if tap.shut {
				t.Error("it does not go on")
			}
		})
	}
}

// turns runs everything that is due.
func turns(t *testing.T, s *shares) {
	t.Helper()
	for range 3 {
		if err := s.l.el.Turn(); err != nil {
			t.Fatal(err)
		}
	}
}
