package wire

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the peer's headers contain, the counts stay within the sent and granted ones.
func TestCreditsAgainstAnyPeer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint32().Draw(t, "start") // the counts wrap
		c := Session{send: 4, receive: 3, sent: start, acked: start, received: start, consumed: start, stated: start}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				if c.Window() > 0 {
					c.sent++
				}
			case 1:
				if c.consumed != c.received {
					c.consumed++
				}
			case 2:
				h := Header{Type: TypeData, Consumed: start + uint32(rapid.IntRange(-2, 60).Draw(t, "consumed"))}
				before := c
				if c.Take(h) != nil {
					return // the connection ends here
				}
				if h.Consumed-before.acked > before.sent-before.acked {
					t.Fatalf("took %d consumed of %d sent", h.Consumed, before.sent)
				}
			}
			if c.Window() > 4 || c.received-c.consumed > 3 || c.sent-c.acked > 4 {
				t.Fatalf("out of bounds: %+v", c)
			}
		}
	})
}

func TestCreditUpdatesAreDueAtHalfTheWindow(t *testing.T) {
	c := Session{send: 8, receive: 8, received: 8}
	for i := range 8 {
		if due := c.updateDue(); due != (i >= 4) {
			t.Errorf("%d of 8 consumed and not stated: due %v", i, due)
		}
		c.consumed++
	}
	c.Sent(TypeCredit, 0)
	if c.updateDue() {
		t.Error("still due after an update")
	}
	if err := c.Take(Header{Type: TypeCredit, Flags: AckNow}); err != nil || !c.updateDue() {
		t.Errorf("ack-now with everything consumed: %v, due %v", err, c.updateDue())
	}
}

// An unrequested answer, and a second probe before the first was answered, break the protocol.
func TestProbesThatAreNotAsked(t *testing.T) {
	c := Session{receive: 1}
	if err := c.Take(Header{Type: TypeAnswer}); err == nil {
		t.Error("an answer to no probe was taken")
	}
	if err := c.Take(Header{Type: TypeProbe}); err != nil || !c.owing {
		t.Errorf("a probe: %v, an answer is due: %v", err, c.owing)
	}
	if err := c.Take(Header{Type: TypeProbe}); err == nil {
		t.Error("a second probe was taken")
	}
}

// Behind a goodbye nothing may come.
func TestGoodbyeIsTheLast(t *testing.T) {
	s := NewSession(4)
	s.Agree(Hello{Version: helloOldest, Credits: 4})
	if err := s.Take(Header{Type: TypeGoodbye}); err != nil || !s.Goodbye() {
		t.Errorf("a goodbye: %v, noted: %v", err, s.Goodbye())
	}
	for typ := TypeData; typ <= TypeAnswer; typ++ {
		again := s
		if err := again.Take(Header{Type: typ}); err == nil {
			t.Errorf("a message of type %d behind the goodbye was taken", typ)
		}
	}
}

// What takes no credit has an order: the answer to a probe, then the counts of consumed messages,
// each once.
func TestNextIsSaidOnce(t *testing.T) {
	s := NewSession(1)
	s.Agree(Hello{Version: helloOldest, Credits: 1})
	for _, h := range []Header{{Type: TypeData, Flags: AckNow}, {Type: TypeProbe}} {
		if err := s.Take(h); err != nil {
			t.Fatal(err)
		}
	}
	s.Sent(TypeData, 0) // not consumed when this side finishes
	s.Finish()
	type said struct {
		typ   Type
		flags uint8
	}
	for _, want := range []said{{TypeAnswer, 0}, {TypeCredit, AckNow}} {
		typ, flags, ok := s.Next()
		if got := (said{typ, flags}); !ok || got != want {
			t.Fatalf("next is %+v, %v, want %+v", got, ok, want)
		}
		s.Sent(typ, flags)
	}
	if typ, _, ok := s.Next(); ok {
		t.Errorf("a second message of type %d", typ)
	}
	s.Consume() // the peer has asked to know
	if typ, flags, ok := s.Next(); !ok || typ != TypeCredit || flags != 0 {
		t.Errorf("with everything consumed: type %d, flags %d, %v", typ, flags, ok)
	}
}

// end is one end of a connection without a device: its session, and the headers that are under way
// to the other.
type end struct {
	Session
	out []Header
	bye bool // it has sent its goodbye
}

// say puts a header under way.
func (e *end) say(typ Type, flags uint8) {
	e.out = append(e.out, e.Header(typ, flags))
	e.Sent(typ, flags)
}

// relieve sends the free credits, if the peer stands still.
func (e *end) relieve() {
	if !e.bye && e.Stands() {
		e.say(TypeCredit, 0)
	}
}

// update sends the due control messages.
func (e *end) update() {
	for !e.bye {
		typ, flags, ok := e.Next()
		if !ok {
			return
		}
		e.say(typ, flags)
	}
}

// In whatever order an owner releases, its peer never stands still for good: when it has no
// credits left, and none on their way to it, every credit that is free is one that Stands reports.
// And at most one update that is sent for that is under way at a time.
func TestNobodyStandsStillForCreditsThatAreFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window, start := rapid.Uint32Range(1, 40).Draw(t, "window"), rapid.Uint32().Draw(t, "start")
		sender := end{Session: Session{send: window, receive: 1, sent: start, acked: start}}
		receiver := end{Session: Session{send: 1, receive: window, received: start, consumed: start, stated: start}}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				if sender.Window() > 0 {
					sender.say(TypeData, 0)
				}
			case 2, 3:
				deliver(t, &sender, &receiver)
			case 4:
				if receiver.Unfreed() > 0 { // the credits are alike, so their order does not matter
					receiver.Consume()
					receiver.update()
				}
			case 5:
				deliver(t, &receiver, &sender)
			}
			if receiver.Stands() {
				if n := len(receiver.out); n > 0 {
					t.Fatalf("%d updates are under way to a peer that is said to stand still", n)
				}
				receiver.relieve()
			}
			if len(receiver.out) > 2 {
				t.Fatalf("%d updates of what was consumed are under way", len(receiver.out))
			}
			waits := sender.Window() == 0 && len(sender.out) == 0 && len(receiver.out) == 0
			if waits && receiver.Unfreed() < int(window) {
				t.Fatalf("%d of %d credits are free, and the peer waits for them: %+v", int(window)-receiver.Unfreed(), window, receiver.Session)
			}
		}
	})
}

// deliver delivers the oldest header that is under way.
func deliver(t *rapid.T, from, to *end) {
	if len(from.out) == 0 {
		return
	}
	if err := to.Take(from.out[0]); err != nil {
		t.Fatal(err)
	}
	from.out = from.out[1:]
}

// However two ends take turns, no more control messages are under way than receives are kept for
// them, and no more data than credits.
func TestControlMessagesUnderWay(t *testing.T) {
	most, all := 0, 0
	for seed := range uint64(30000) {
		relief := seed >= 20000 // a peer that stands still gets the free credits
		rng := rand.New(rand.NewPCG(seed, 5))
		var ends [2]end
		for i := range ends {
			n := 1 + rng.Uint32N(16)
			ends[i].version = helloVersion
			ends[i].receive, ends[1-i].send = n, n
		}
		slow := 1 + rng.IntN(80) // how much slower the second's messages are handled than the rest
		for step := range 200 {
			i := rng.IntN(2)
			e, peer := &ends[i], &ends[1-i]
			what := rng.IntN(11)
			if e.bye {
				what = 4 // it sends nothing further; its messages under way arrive
			}
			switch {
			case what == 10 && step > 150 && rng.IntN(4) == 0:
				e.bye = true
				e.say(TypeGoodbye, 0)
			case what == 10 && !e.Probing():
				e.say(TypeProbe, 0)
			case what == 10 && !e.Resizing():
				e.say(TypeReceives, 0)
			case what < 3 && e.Window() > 0 && !e.asked:
				typ := TypeData
				if e.Unread() < MaxOffers && rng.IntN(3) > 0 {
					typ = TypeOffer
				}
				e.say(typ, 0)
			case what < 6 && len(e.out) > 0 && (i == 0 || rng.IntN(slow) == 0):
				if err := peer.Take(e.out[0]); err != nil {
					t.Fatal(err)
				}
				e.out = e.out[1:]
				peer.update()
			case what < 9 && e.received-e.consumed > uint32(e.heard-e.read):
				e.Consume()
				e.update()
			case what < 3 && e.heard != e.read: // a Read begins, or ends
				e.Reading(!e.reading || rng.IntN(2) == 0)
				if !e.reading {
					e.Pull()
					e.Reading(e.heard != e.read && rng.IntN(3) > 0)
				}
				e.update()
			case what == 9 && !e.asked && rng.IntN(4) == 0:
				e.Finish()
				e.update()
			}
			if relief {
				e.relieve()
			}
			for i := range ends {
				updates, others, data := 0, 0, ends[1-i].received-ends[1-i].consumed
				for _, h := range ends[i].out {
					switch {
					case h.Type == TypeCredit:
						updates++
					case h.Type.isControl():
						others++
					default:
						data++
					}
				}
				most, all = max(most, updates), max(all, others)
				if others > ControlReceives-updatesMax {
					t.Fatalf("seed %d: a goodbye, probes, answers and changes of receives under way are %d", seed, others)
				}
				if updates > updatesMax {
					t.Fatalf("seed %d: %d credit updates are under way, and there are %d receives for them", seed, updates, updatesMax)
				}
				if data > ends[1-i].receive {
					t.Fatalf("seed %d: %d messages occupy receives, for %d credits", seed, data, ends[1-i].receive)
				}
			}
		}
	}
	if all < ControlReceives-updatesMax {
		t.Errorf("never more than %d others were under way, of %d: the test does not try hard enough", all, ControlReceives-updatesMax)
	}
	// a message that states offers states the consumed ones too: no more have been seen
	if most < updatesMax-2 {
		t.Errorf("never more than %d updates were under way, of %d: the test does not try hard enough", most, updatesMax)
	}
}
