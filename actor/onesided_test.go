package actor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// noted has the reports of one-sided operations. Loop goroutine. A test reads it when all has
// settled.
type noted struct {
	order    []*datapath.OneSided // those that have ended
	errs     map[*datapath.OneSided]error
	abandons map[*datapath.OneSided]int
	after    func() // called in ended
}

func newNoted() *noted {
	return &noted{errs: make(map[*datapath.OneSided]error), abandons: make(map[*datapath.OneSided]int)}
}

func (n *noted) Ended(_ *datapath.Conn, o *datapath.OneSided, err error) {
	n.order = append(n.order, o)
	n.errs[o] = err
	if n.after != nil {
		n.after()
	}
}

func (n *noted) Abandoned(_ *datapath.Conn, o *datapath.OneSided) { n.abandons[o]++ }

// once fails unless each of ops has ended once, in order, with an error that is want (nil: none).
func (n *noted) once(w *world, ops []*datapath.OneSided, want error) {
	w.Helper()
	if len(n.order) != len(ops) {
		w.Fatalf("%d operations have ended, want %d", len(n.order), len(ops))
	}
	for i, o := range ops {
		if n.order[i] != o {
			w.Fatalf("operation %d has not ended in its turn", i)
		}
		if err := n.errs[o]; !errors.Is(err, want) {
			w.Fatalf("operation %d ended with %v, want %v", i, err, want)
		}
	}
}

// reach is a connection whose client has memory to write from and whose server has memory to write
// to.
type reach struct {
	pair
	*noted
	near, far *verbs.MR
}

func (w *world) reach(n int, cfg ...IDConfig) *reach {
	w.Helper()
	c := one(cfg)
	c.Memory = n
	r := &reach{pair: w.connect(c), noted: newNoted()}
	r.near = w.alloc(w.rt, r.c, n, verbs.LocalWrite)
	r.far = w.alloc(w.far, r.s, n, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	return r
}

// alloc makes memory of a connection's.
func (w *world) alloc(rt *Runtime, id *actor.PID, n int, access verbs.Access) (mr *verbs.MR) {
	w.Helper()
	w.onLoop(rt, func(l *loop) {
		var err error
		if mr, err = w.ident(l, id).tenancy.home.area.Alloc(n, access, new(datapath.Lease)); err != nil {
			w.Error(err)
		}
	})
	return mr
}

// op returns an operation on n bytes at the same offset of both sides.
func (r *reach) op(op verbs.Opcode, off, n int) *datapath.OneSided {
	return &datapath.OneSided{
		Op: op, Near: verbs.SGE{MR: r.near, Offset: uint32(off), Length: uint32(n)}, Addr: r.far.Addr + uint64(off), RKey: r.far.RKey, Issuer: r.noted,
	}
}

// postings is a queue pair that records its posted work requests, in Inline.
type postings struct {
	verbs.QP
	posted []verbs.SendWR
}

func (q *postings) PostSend(wr *verbs.SendWR) error {
	err := q.QP.PostSend(wr)
	if err == nil {
		kept := *wr
		kept.Inline = sentBytes(wr)
		q.posted = append(q.posted, kept)
	}
	return err
}

// settled returns the posts once the loops are idle: before, a message may have arrived whose
// PostSend has not returned, and q is the loop's.
func (q *postings) settled() []verbs.SendWR {
	settle()
	return q.posted
}

// onAllDevices runs test on the twin as the embedded device is, and as the kernel's are.
func onAllDevices(t *testing.T, test func(w *world), opts ...Config) {
	t.Helper()
	onFlavors(t, test, opts...)
	t.Run("kernel-like", func(t *testing.T) {
		onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) { test(w) }, opts...)
	})
}

// Bytes written before a message are there when the message arrives.
func TestOneSidedKeepsItsPlace(t *testing.T) {
	onAllDevices(t, func(w *world) {
		r := w.reach(1 << 10)
		copy(r.near.Bytes, "written")
		var ops []*datapath.OneSided
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, r.c)
			for i := range 10 {
				c.Submit(&takenSend([]byte{byte(i)}).out)
			}
			o := r.op(verbs.Write, 0, 7)
			if err := c.OneSided(o); err != nil {
				w.Error(err)
			}
			ops = append(ops, o)
			c.Submit(&takenSend([]byte("behind")).out)
		})
		for range 10 {
			next[*Received](r.server)
		}
		next[*Received](r.server)
		var got []byte
		w.onLoop(w.far, func(*loop) { got = bytes.Clone(r.far.Bytes[:7]) })
		if string(got) != "written" {
			w.Errorf("the peer got a message before the Write that it follows: %q", got)
		}
		settle()
		r.once(w, ops, nil)
		r.end(w)
	})
}

// end closes the connection.
func (r *reach) end(w *world) {
	w.Helper()
	r.client.send(r.c, &Close{})
	until[*Closed](r.client)
	until[*Closed](r.server)
}

// Messages that wait for credits do not hold operations up, which the peer may need to give
// credits.
func TestOneSidedOvertakesWhatWaitsForCredits(t *testing.T) {
	onAllDevices(t, func(w *world) {
		r := w.reach(64, IDConfig{MaxMessage: 1 << 10, Credits: 1})
		var held []*Received
		var ops []*datapath.OneSided
		r.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				held = append(held, m.Retain())
			}
		})
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, r.c)
			for range 3 {
				c.Submit(&takenSend([]byte("message")).out)
			}
			for range 3 * datapath.SendDepth {
				o := r.op(verbs.Read, 0, 8)
				ops = append(ops, o)
				if err := c.OneSided(o); err != nil {
					w.Error(err)
				}
			}
		})
		settle()
		r.once(w, ops, nil)
		r.server.reactWith(func(actor.Context) {})
		for _, m := range held {
			m.Release()
		}
		r.end(w)
	})
}

// Whatever is submitted in whatever order, in parts, through send queues of any length, on a
// device that has no room now and then: operations are posted in order, and messages, and no
// message before an operation that was submitted before it. Where no message waits for credits the
// order is that of submission altogether.
func TestOneSidedOrder(t *testing.T) {
	for _, credits := range []int{2, 4096} {
		for _, depth := range []int{1 + wire.ControlReceives, 2 + wire.ControlReceives, 20} {
			t.Run(fmt.Sprintf("credits %d, depth %d", credits, depth), func(t *testing.T) {
				t.Parallel()
				onKernelLike(t, kernelLike{wr: 1 << 14}, func(w *world, near, far *kernelLike) {
					near.wr, near.fail = depth, 10
					mixed(w, rand.New(rand.NewPCG(uint64(depth), uint64(credits))), credits)
				}, Config{Limits: Limits{SendQueue: 1 << 20}})
			})
		}
	}
}

func mixed(w *world, rng *rand.Rand, credits int) {
	const all = 600
	server, client := w.farProbe(), w.probe()
	w.listen(server, IDConfig{MaxMessage: 1 << 10, Credits: credits, Memory: all})
	r := &reach{pair: pair{client: client, server: server}, noted: newNoted()}
	r.c = w.rt.CreateID(client.pid, IDConfig{MaxMessage: 1 << 10, Credits: 1, Memory: all})
	client.send(r.c, &Dial{Addr: there + ":7471"})
	_, r.s = next[*ConnectRequest](server)
	server.send(r.s, &Accept{})
	next[*Established](server)
	next[*Established](client)
	r.near, r.far = w.alloc(w.rt, r.c, all, verbs.LocalWrite), w.alloc(w.far, r.s, all, verbs.LocalWrite|verbs.RemoteWrite)
	q := &postings{}
	w.onLoop(w.rt, func(l *loop) {
		c := w.conn(l, r.c)
		q.QP, c.QP = c.QP, q
	})
	var ops []*datapath.OneSided
	submitted := make(map[int]bool) // number: is it an operation
	for n := 0; n < all; {
		burst := rng.IntN(30)
		w.onLoop(w.rt, func(l *loop) {
			for ; burst > 0 && n < all; burst-- {
				if submitted[n] = rng.IntN(2) == 0; submitted[n] {
					o := r.op(verbs.Write, n, 1)
					ops = append(ops, o)
					if err := w.conn(l, r.c).OneSided(o); err != nil {
						w.Error(err)
					}
				} else {
					w.conn(l, r.c).Submit(&takenSend(binary.BigEndian.AppendUint32(nil, uint32(n))).out)
				}
				n++
			}
		})
		time.Sleep(time.Duration(rng.IntN(3)) * datapath.RetryAfter)
	}
	client.send(r.c, &Close{})
	until[*Closed](client)
	until[*Closed](server)
	settle()
	r.once(w, ops, nil)
	var order, opsOnly, sendsOnly []int
	for _, wr := range q.settled() {
		if wr.Op == verbs.Send {
			for _, m := range messagesIn(wr.Inline) {
				n := int(binary.BigEndian.Uint32(m))
				sendsOnly, order = append(sendsOnly, n), append(order, n)
			}
			continue
		}
		n := int(wr.RemoteAddr - r.far.Addr)
		opsOnly, order = append(opsOnly, n), append(order, n)
	}
	if len(order) != all || !slices.IsSorted(opsOnly) || !slices.IsSorted(sendsOnly) {
		w.Errorf("%d of %d posted; operations in order: %v, messages in order: %v",
			len(order), all, slices.IsSorted(opsOnly), slices.IsSorted(sendsOnly))
	}
	if credits > all && !slices.IsSorted(order) {
		w.Error("not posted in the order of submission, although nothing waits for credits")
	}
	last := -1 // the youngest message that was posted
	for _, n := range order {
		if submitted[n] && n < last {
			w.Errorf("operation %d was posted behind message %d", n, last)
		} else if !submitted[n] {
			last = n
		}
	}
}

// More operations than the send queue holds wait for it, and do not delay the report of consumed
// messages to the peer.
func TestOneSidedFillsTheQueue(t *testing.T) {
	onAllDevices(t, func(w *world) {
		r := w.reach(64, IDConfig{MaxMessage: 1 << 10, Credits: 4})
		time.Sleep(time.Second) // else the answer to a first probe reports the consumed messages
		var held []*Received
		r.client.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				held = append(held, m.Retain())
			}
		})
		for range 4 {
			r.server.send(r.s, NewSend([]byte("all that the peer has credits for")))
			next[*Received](r.client)
		}
		w.f.Delay(time.Second)
		var ops []*datapath.OneSided
		depth, q := 0, &postings{}
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, r.c)
			depth, q.QP, c.QP = c.Out.Flight.Depth, c.QP, q
			for range 5 * datapath.SendDepth {
				o := r.op(verbs.Read, 0, 8)
				ops = append(ops, o)
				if err := c.OneSided(o); err != nil {
					w.Error(err)
				}
			}
		})
		settle()
		for _, m := range held {
			m.Release()
		}
		settle()
		w.onLoop(w.rt, func(*loop) {
			if len(q.posted) != depth {
				w.Errorf("%d posted into a queue of %d", len(q.posted), depth)
			}
		})
		time.Sleep(time.Hour)
		settle()
		r.once(w, ops, nil)
		if wr := q.posted[depth]; wr.Op != verbs.Send || wire.Type(wr.Inline[0]) != wire.TypeCredit {
			w.Errorf("when there is room the peer is not notified first that its messages were consumed, but a %v goes", wr.Op)
		}
		r.end(w)
	})
}

// The end of a connection ends posted and waiting operations, each once, and later ones are
// refused.
func TestOneSidedIsFlushedOnce(t *testing.T) {
	onAllDevices(t, func(w *world) {
		r := w.reach(64)
		w.f.Delay(time.Second)
		var ops []*datapath.OneSided
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, r.c)
			for range 2 * datapath.SendDepth {
				o := r.op(verbs.Read, 0, 8)
				ops = append(ops, o)
				if err := c.OneSided(o); err != nil {
					w.Error(err)
				}
			}
			if c.WaitingOps() == 0 || c.Out.Flight.Len() == 0 {
				w.Errorf("%d operations in flight and %d waiting, want both", c.Out.Flight.Len(), c.WaitingOps())
			}
			c.ID.Context.(*ident).destroyID(nil)
			if err := c.OneSided(r.op(verbs.Read, 0, 8)); !errors.Is(err, ErrFlushed) {
				w.Errorf("an operation after the end: %v", err)
			}
		})
		until[*Closed](r.client)
		settle()
		if len(r.order) != len(ops) {
			w.Errorf("%d operations have ended, want %d", len(r.order), len(ops))
		}
		seen := make(map[*datapath.OneSided]int)
		for _, o := range r.order {
			seen[o]++
			if seen[o] > 1 || !errors.Is(r.errs[o], ErrFlushed) {
				w.Errorf("an operation ended %d times, with %v", seen[o], r.errs[o])
			}
		}
		until[*Closed](r.server)
	})
}

// An operation that the device keeps beyond the end of its actor is answered then, and ends when
// the device returns it.
func TestOneSidedIsAbandonedOnce(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
		near.takes = map[states.Op]time.Duration{states.OpDestroyID: time.Hour}
		r := w.reach(64)
		w.f.Delay(time.Minute)
		o := r.op(verbs.Read, 0, 8)
		w.onLoop(w.rt, func(l *loop) {
			if err := w.conn(l, r.c).OneSided(o); err != nil {
				w.Error(err)
			}
		})
		w.sys.Root.Stop(r.c)
		until[*Closed](r.client)
		settle()
		if r.abandons[o] != 1 {
			w.Errorf("abandoned %d times", r.abandons[o])
		}
		time.Sleep(2 * time.Hour)
		until[*Closed](r.server)
		settle() // the test examines the operations that ended on the loop here
		if len(r.order) != 1 || r.abandons[o] != 1 {
			w.Errorf("ended %d times, abandoned %d times", len(r.order), r.abandons[o])
		}
	})
}

// An operation that the queue pair refuses ends immediately, and costs nothing.
func TestOneSidedIsRefused(t *testing.T) {
	onAllDevices(t, func(w *world) {
		r := w.reach(64)
		o := r.op(verbs.Read, 60, 8)
		w.onLoop(w.rt, func(l *loop) {
			if err := w.conn(l, r.c).OneSided(o); err != nil {
				w.Error(err)
			}
		})
		if err := r.errs[o]; err == nil || errors.Is(err, ErrFlushed) {
			w.Errorf("a Read beyond the end of memory: %v", err)
		}
		r.client.send(r.c, NewSend([]byte("still here")))
		next[*Received](r.server)
		r.end(w)
	})
}

// Only a connection that shares memory with its device, or needs memory for its peer, has a private
// domain, and none is left behind.
func TestDomains(t *testing.T) {
	domains := func(w *world, p pair) (scoped bool, n int) {
		w.onLoop(w.rt, func(l *loop) {
			scoped, n = w.conn(l, p.c).Scoped(), len(l.Devices[0].Domains)
		})
		return scoped, n
	}
	onFlavors(t, func(w *world) {
		if scoped, n := domains(w, w.connect()); !scoped || n != 1 {
			w.Errorf("scoped %v, %d domains with memory: every connection has a domain, and the loop's memory serves it", scoped, n)
		}
	})
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		// nothing can be offered
		small := IDConfig{Raw: true, MaxMessage: datapath.EagerPosted, Credits: 4}
		p := w.connect(small)
		if scoped, n := domains(w, p); scoped || n != 1 {
			w.Errorf("scoped %v, %d domains without Memory", scoped, n)
		}
		var kept *Received
		p2 := pair{client: w.probe(), server: p.server}
		p2.client.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				kept = m.Retain()
			}
		})
		p2.c = w.rt.CreateID(p2.client.pid, IDConfig{MaxMessage: small.MaxMessage, Credits: small.Credits, Memory: 1})
		p2.client.send(p2.c, &Dial{Addr: there + ":7471"})
		_, p2.s = next[*ConnectRequest](p2.server)
		p2.server.send(p2.s, &Accept{})
		next[*Established](p2.server)
		next[*Established](p2.client)
		if scoped, n := domains(w, p2); !scoped || n != 2 {
			w.Errorf("scoped %v, %d domains with Memory", scoped, n)
		}
		p2.server.send(p2.s, NewSend(bytes.Repeat([]byte("x"), 1<<10)))
		p2.client.send(p2.c, NewSend(bytes.Repeat([]byte("y"), 1<<10)))
		next[*Received](p2.client)
		next[*Received](p2.server)
		p2.client.send(p2.c, &DestroyID{})
		until[*Closed](p2.client)
		until[*Closed](p2.server)
		settle()
		count := func() (n int) {
			w.onLoop(w.rt, func(l *loop) { n = len(l.Devices[0].Domains) })
			return n
		}
		if count() != 2 || string(kept.Data[:1]) != "x" {
			w.Error("the memory of a message that its owner holds is gone with the connection")
		}
		kept.Release()
		settle()
		if n := count(); n != 1 {
			w.Errorf("%d domains when the connection and its last message are gone", n)
		}
	})
}
