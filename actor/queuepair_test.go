package actor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// handle returns an identifier's handle, by which the fabric knows it.
func (w *world) handle(id int, of pair) cmid.Handle {
	pid := of.c
	if id != 0 {
		pid = of.s
	}
	for _, i := range append(w.rt.Inspect(), w.far.Inspect()...) {
		if i.PID.Equal(pid) {
			return i.ID
		}
	}
	w.Fatal("the identifier is gone")
	return 0
}

// ended asserts that the next end that p gets has this cause, comes once, and is the last event.
func (w *world) ended(p *probe, id fmt.Stringer, status verbs.Status) {
	w.Helper()
	var events []got
	for _, g := range until[*Closed](p) {
		switch g.msg.(type) {
		case *Disconnected, *Closed:
			events = append(events, g)
		}
	}
	if k := kinds(events); k != "Disconnected Closed" {
		w.Fatalf("got %v", events)
	}
	for _, err := range []error{events[0].msg.(*Disconnected).Err, events[1].msg.(*Closed).Err} {
		var q *QueuePairError
		if !errors.As(err, &q) || q.Status != status {
			w.Errorf("the end is %v, want %v", err, status)
		}
	}
	time.Sleep(time.Minute)
	settle()
	for len(p.got) > 0 {
		if g := p.any(); kinds([]got{g}) != "DeadLetterResponse" { // a send that came after the end
			w.Errorf("got %v after Closed", g)
		}
	}
}

// Every work request that completes with an error ends its connection, with the first status and
// not with the flushes behind it.
func TestFailedWorkRequestEndsItsConnection(t *testing.T) {
	statuses := []verbs.Status{
		verbs.StatusLocLen, verbs.StatusLocQPOp, verbs.StatusLocProt, verbs.StatusRemInvReq, verbs.StatusRemAccess, verbs.StatusRemOp,
		verbs.StatusRetryExc, verbs.StatusRNRRetryExc, verbs.StatusFatal, verbs.StatusGeneral, verbs.StatusFlushed,
	}
	for _, mode := range []string{"messages", "raw", "foreign"} {
		for _, op := range []verbs.Opcode{verbs.Send, verbs.Recv} {
			for _, status := range statuses {
				if op == verbs.Recv && status == verbs.StatusFlushed {
					// its sender gets an error, and disconnects before anybody loses patience
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%v", mode, op, status), func(t *testing.T) {
					inWorld(t, 0, func(w *world) {
						p := w.connectAs(mode)
						w.f.FailNext(w.handle(0, p), op, status)
						for range 3 {
							p.client.send(p.c, NewSend([]byte("there")))
							p.server.send(p.s, NewSend([]byte("back")))
						}
						w.ended(p.client, p.c, status)
						if g := until[*Closed](p.server); len(g) < 2 {
							w.Errorf("the peer got %v", g)
						}
					})
				})
			}
		}
	}
}

// connectAs makes a connection whose client is in a mode.
func (w *world) connectAs(mode string) pair {
	w.Helper()
	var here, there IDConfig
	switch mode {
	case "raw":
		here, there = IDConfig{Raw: true}, IDConfig{Raw: true}
	case "foreign":
		there = IDConfig{Raw: true}
	}
	p := pair{client: w.probe(), server: w.farProbe()}
	w.listen(p.server, there)
	p.c = w.rt.CreateID(p.client.pid, here)
	p.client.send(p.c, &Dial{Addr: thereAddr})
	_, p.s = next[*ConnectRequest](p.server)
	p.server.send(p.s, &Accept{})
	next[*Established](p.server)
	next[*Established](p.client)
	return p
}

const thereAddr = there + ":7471"

// A control message that fails ends the connection as well: no actor has sent it, so none would be
// notified.
func TestFailedControlMessageEndsItsConnection(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		p := w.connect()
		// the server sends nothing but counts
		w.f.FailNext(w.handle(1, p), verbs.Send, verbs.StatusRemOp)
		for range 64 {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		w.ended(p.server, p.s, verbs.StatusRemOp)
	})
}

// A large message's Read that fails ends the connection.
func TestFailedReadOfAnOfferEndsItsConnection(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 20, Credits: 8})
		w.f.FailNext(w.handle(1, p), verbs.Read, verbs.StatusRetryExc)
		p.client.send(p.c, NewSend(make([]byte, 1<<20)))
		w.ended(p.server, p.s, verbs.StatusRetryExc)
	})
}

// A fatal event of the queue pair ends its connection, although no work request was under way.
func TestFatalQueuePairEvent(t *testing.T) {
	for _, mode := range []string{"messages", "raw", "foreign"} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				p := w.connectAs(mode)
				w.f.FailQP(w.handle(0, p))
				w.ended(p.client, p.c, verbs.StatusSuccess)
			})
		})
	}
}

// On iWARP the device reports the end, in its terms. The status reports the state known to this
// side.
func TestFailedWorkRequestOnIWARP(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		w.f.FailNext(w.handle(0, p), verbs.Recv, verbs.StatusLocProt)
		p.server.send(p.s, NewSend([]byte("back")))
		got := until[*Closed](p.client)
		var q *QueuePairError
		if err := got[len(got)-1].msg.(*Closed).Err; !errors.As(err, &q) || q.Status != verbs.StatusLocProt || !errors.Is(err, unix.ECONNRESET) {
			w.Errorf("closed because of %v", err)
		}
		if k := kinds(got); k != "Disconnected Closed" {
			w.Errorf("got %s", k)
		}
	})
}

// An ordinary end flushes posted work, also on devices that have receives posted, and is reported
// without a cause.
func TestFlushesOfAnOrdinaryEnd(t *testing.T) {
	for name, flavor := range flavors {
		for _, who := range []string{"client", "server"} {
			t.Run(name+"/"+who, func(t *testing.T) {
				var k, far kernelLike
				inWorldOfTwo(t, flavor, k.over, far.over, func(w *world) {
					w.f.Reorder(true)
					p := w.connect()
					ends, id := p.client, p.c
					if who == "server" {
						ends, id = p.server, p.s
					}
					ends.send(id, &Close{})
					for _, q := range []*probe{p.client, p.server} {
						for _, g := range until[*Closed](q) {
							if d, ok := g.msg.(*Disconnected); ok && d.Err != nil {
								w.Errorf("disconnected because of %v", d.Err)
							}
							if c, ok := g.msg.(*Closed); ok && c.Err != nil {
								w.Errorf("closed because of %v", c.Err)
							}
						}
					}
				})
			})
		}
	}
}

// A queue pair that accepts nothing is dead, although nothing of it completes; one that has no room
// is not.
func TestRefusedPostingEndsItsConnection(t *testing.T) {
	for name, refusal := range map[string]error{"dead": unix.ENOTCONN, "full": unix.ENOMEM} {
		for _, who := range []string{"a message", "a count"} {
			t.Run(name+"/"+who, func(t *testing.T) {
				onKernelLike(t, kernelLike{}, func(w *world, near, far *kernelLike) {
					p := w.connect()
					teller, id, rt, k := p.client, p.c, w.rt, near
					if who == "a count" {
						teller, id, rt, k = p.server, p.s, w.far, far
					}
					w.onLoop(rt, func(*loop) { k.refuse = refusal })
					for range 2 * datapath.DefaultCredits {
						p.client.send(p.c, NewSend([]byte("x")))
					}
					time.Sleep(2 * datapath.FailPatience)
					settle()
					w.onLoop(rt, func(*loop) { k.refuse = nil })
					if st, ok := w.state(id); ok && st == states.Connected != (name == "full") {
						w.Errorf("after %v it is %v", refusal, st)
					}
					if name == "dead" {
						var q *QueuePairError
						g := until[*Closed](teller)
						if err := g[len(g)-1].msg.(*Closed).Err; !errors.As(err, &q) || !errors.Is(err, refusal) {
							w.Errorf("closed because of %v", err)
						}
						return
					}
					p.client.send(p.c, &Close{})
					for _, q := range []*probe{p.client, p.server} {
						g := until[*Closed](q)
						if c := g[len(g)-1].msg.(*Closed); c.Err != nil {
							w.Errorf("closed because of %v", c.Err)
						}
					}
				})
			})
		}
	}
}

// A message longer than the peer's receive ends the connection on both sides.
func TestRawMessageTooLong(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := pair{client: w.probe(), server: w.farProbe()}
		w.listen(p.server, IDConfig{Raw: true, MaxMessage: kib, Credits: 4})
		p.c = w.rt.CreateID(p.client.pid, IDConfig{Raw: true})
		p.client.send(p.c, &Dial{Addr: thereAddr})
		_, p.s = next[*ConnectRequest](p.server)
		p.server.send(p.s, &Accept{})
		next[*Established](p.server)
		next[*Established](p.client)
		p.client.send(p.c, NewSend(make([]byte, 2*kib)))
		begin := time.Now()
		w.ended(p.server, p.s, verbs.StatusLocLen)
		if w.flavor&states.IWARP == 0 {
			w.ended(p.client, p.c, verbs.StatusRemInvReq)
		} else if g := until[*Closed](p.client); g[len(g)-1].msg.(*Closed).Err == nil {
			w.Error("the sender gets no cause")
		}
		if d := time.Since(begin); d > 3*time.Minute {
			w.Errorf("that took %v", d)
		}
	})
}

// A network that is cut ends the connection of a side that has sends in flight.
func TestCutNetworkEndsAConnection(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		p := w.connect()
		w.f.Cut(w.f.Host(""), w.f.Host("far"))
		p.client.send(p.c, NewSend([]byte("lost")))
		begin := time.Now()
		d := until[*Disconnected](p.client)
		if took := time.Since(begin); took > 20*time.Second {
			w.Errorf("notified after %v", took)
		}
		var q *QueuePairError
		if err := d[len(d)-1].msg.(*Disconnected).Err; !errors.As(err, &q) || q.Status != verbs.StatusRetryExc || !errors.Is(err, unix.ETIMEDOUT) {
			w.Errorf("disconnected because of %v", err)
		}
		until[*Closed](p.client)
	})
}

// On each side of a connection whose network is cut an end is answered once, in time, with the
// truth about the messages.
func TestEndsOverACutNetwork(t *testing.T) {
	for _, end := range []Command{&Close{}, &Disconnect{}, &DestroyID{}} {
		onFlavors(t, func(w *world) {
			p := w.connect()
			w.f.Cut(w.f.Host(""), w.f.Host("far"))
			p.client.send(p.c, NewSend([]byte("lost")))
			p.client.send(p.c, end)
			begin := time.Now()
			g := until[*Closed](p.client)
			// InfiniBand's connection manager repeats its request for that long
			if d := time.Since(begin); d > time.Minute+40*time.Second {
				w.Errorf("%T: closed after %v", end, d)
			}
			if c := g[len(g)-1].msg.(*Closed); c.Delivered != 0 || c.Unknown != 1 {
				w.Errorf("%T: %v", end, g[len(g)-1])
			}
			n := 0
			for _, m := range g {
				if _, ok := m.msg.(*Disconnected); ok {
					n++
				}
			}
			if n > 1 {
				w.Errorf("%T: the end was reported %d times", end, n)
			}
			time.Sleep(time.Minute)
			settle()
			p.client.quiet()
			until[*Closed](p.server) // gives up on its own
		})
	}
}

// A Manual owner is notified, once, and decides.
func TestManualLearnsOfAFailedQueuePair(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect(IDConfig{Manual: true})
		w.f.FailNext(w.handle(0, p), verbs.Send, verbs.StatusLocProt)
		p.client.send(p.c, NewSend([]byte("x")))
		until[*Disconnected](p.client)
		time.Sleep(time.Minute)
		settle()
		p.client.quiet()
		if _, ok := w.state(p.c); !ok {
			w.Error("destroyed, although the owner is Manual")
		}
		p.client.send(p.c, &DestroyID{})
		until[*Closed](p.client)
		until[*Disconnected](p.server)
		p.server.send(p.s, &DestroyID{})
		until[*Closed](p.server)
	})
}

// An owner that has made the queue pair itself gets its fatal event, and nothing further.
func TestOwnQueuePairFails(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{Manual: true, PortSpace: cmid.PortSpaceUDP})
		p.send(id, &cmid.BindAddr{Addr: MustAddr(here + ":7471")})
		next[*cmid.Bound](p)
		p.send(id, &Call{Fn: func(id *cmid.ID) error {
			cq, err := id.Device().CreateCQ(4, nil)
			if err != nil {
				return err
			}
			w.Cleanup(func() { _ = w.rt.loops[0].el.Post(func() { _ = cq.Close() }) })
			_, err = id.CreateQP(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1})
			return err
		}})
		next[*Done](p)
		w.f.FailQP(w.handle(0, pair{c: id}))
		if e, _ := next[*cmid.QPFailed](p); e.ID == 0 {
			w.Error("the event names no identifier")
		}
		settle()
		p.quiet()
		p.send(id, &DestroyID{})
		next[*Closed](p)
	})
}
