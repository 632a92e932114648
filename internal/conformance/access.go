package conformance

import (
	"bytes"

	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// access is a requester's operation on its peer's memory.
type access struct {
	w   *world
	c   *sides.Link
	mr  *verbs.MR // the peer's, with all rights
	wr  verbs.SendWR
	got int // Sends that the peer has already received

	rights verbs.Access // everything
	want   verbs.Status // of the requester, on InfiniBand

	over bool // nothing was refused, and the scenario is over
}

const accessed = 4096

// misuses are accesses that a target refuses, by the reason for it.
var misuses = map[string]func(x *access){
	"a key of nobody":             func(x *access) { x.wr.RKey ^= 0x5a5a5a00 },
	"the neighbour of a key":      func(x *access) { x.wr.RKey++ },
	"no key":                      func(x *access) { x.wr.RKey = 0 },
	"the requester's own address": func(x *access) { x.wr.RemoteAddr, x.wr.RKey = x.c.AQ.MR.Addr, x.c.AQ.MR.RKey },
	"freed memory":                func(x *access) { x.w.Must(x.c.Passive.Device().Free(x.mr)) },
	"one byte before the start":   func(x *access) { x.wr.RemoteAddr-- },
	"one byte behind the end":     func(x *access) { x.wr.RemoteAddr += accessed - 63 },
	"all behind the end":          func(x *access) { x.wr.RemoteAddr += accessed },
	"far behind the end":          func(x *access) { x.wr.RemoteAddr += 1 << 40 },
	"the end of all addresses":    func(x *access) { x.wr.RemoteAddr = 1<<64 - 32 },
	"address 0":                   func(x *access) { x.wr.RemoteAddr = 0 },
	"a right it does not have": func(x *access) {
		rights := x.rights &^ verbs.RemoteWrite
		if x.wr.Op == verbs.Read {
			rights = x.rights &^ verbs.RemoteRead
		} else if x.wr.Op.Atomic() {
			rights = x.rights &^ verbs.RemoteAtomic
		}
		x.setTarget(x.w.Memory(x.c.BQ, accessed, rights, 9))
		if x.wr.Op == verbs.Read && x.w.hasDeviation(ReadsUnchecked) {
			x.requireSuccess()
		}
	},
	"memory of another domain": func(x *access) {
		x.setTarget(x.w.foreignMemory(x.c.Passive, accessed, x.rights))
	},
	"a key that was taken back": func(x *access) {
		if x.over = !x.w.canInvalidate(); x.over {
			return
		}
		x.w.Must(x.c.AQ.Post(&verbs.SendWR{ID: 1, Op: verbs.SendWithInvalidate, Inline: []byte("back"), RKey: x.mr.RKey}))
		x.w.Until("the Send that takes it back", func() bool { return len(x.c.BQ.Of(verbs.Recv)) == 1 })
		x.got = 1
	},
}

// setTarget directs the access to the start of mr.
func (x *access) setTarget(mr *verbs.MR) { x.mr, x.wr.RemoteAddr, x.wr.RKey = mr, mr.Addr, mr.RKey }

// requireSuccess requires that a Read succeeds although it has no right to read the memory.
func (x *access) requireSuccess() {
	x.w.Helper()
	x.over = true
	x.wr.Flags |= verbs.Signaled
	x.w.Must(x.c.AQ.Post(&x.wr))
	into := x.wr.SGL[0]
	x.w.Sent("a Read that nobody checks", x.c.AQ)
	x.w.Same("and what it brings", into.MR.Bytes[:into.Length], x.mr.Bytes[:into.Length])
}

// accessScenarios test accesses that are refused, and keys that are invalidated.
var accessScenarios = func() scenarios {
	s := scenarios{"a key is taken back by a Send": takenBack}
	for name, key := range map[string]func(w *world, c *sides.Link) uint32{
		"a key of nobody cannot be taken back": func(*world, *sides.Link) uint32 { return 0x5a5a5a5a },
		"nor one of another domain":            func(w *world, c *sides.Link) uint32 { return w.foreignMemory(c.Passive, 64, sides.RemoteAll).RKey },
		"nor one that was taken back before": func(w *world, c *sides.Link) uint32 {
			mr := w.Memory(c.BQ, 64, sides.RemoteAll, 0)
			w.Must(c.AQ.Post(&verbs.SendWR{ID: 1, Op: verbs.SendWithInvalidate, RKey: mr.RKey}))
			return mr.RKey
		},
		"nor one of memory closed to peers": func(_ *world, c *sides.Link) uint32 { return c.BQ.MR.RKey },
	} {
		s[name] = func(w *world) { badInvalidate(w, key) }
	}
	s = s.where((*world).canInvalidate)
	s["a connection lives on beside another's end"] = besideAnother
	for why, change := range misuses {
		s["Write: "+why] = func(w *world) { requireRefusal(w, verbs.Write, change) }
		s["Read: "+why] = func(w *world) { requireRefusal(w, verbs.Read, change) }
	}
	return s
}()

// requireRefusal makes the active side do what its peer does not allow.
func requireRefusal(w *world, op verbs.Opcode, change func(*access)) {
	c := w.Connected(3)
	near := w.Memory(c.AQ, 64, verbs.LocalWrite, 1)
	good := w.Memory(c.BQ, 64, sides.RemoteAll, 2)
	x := &access{w: w, c: c, rights: sides.RemoteAll, want: verbs.StatusRemAccess}
	x.wr = verbs.SendWR{ID: 3, Op: op, SGL: []verbs.SGE{sides.Part(near, 0, 64)}}
	if op.Atomic() {
		x.rights |= verbs.RemoteAtomic
		x.wr.SGL[0].Length = verbs.AtomicLen
	}
	x.setTarget(w.Memory(c.BQ, accessed, x.rights, 3))
	if change(x); x.over {
		return
	}
	keepNear, keepFar := bytes.Clone(near.Bytes), bytes.Clone(x.mr.Bytes)

	w.Must(c.AQ.Write(2, verbs.Signaled, sides.Part(near, 0, 64), good, 0))
	w.Must(c.AQ.Post(&x.wr)) // not signalled; a failure completes nevertheless
	w.Must(c.AQ.PostSend(4, "behind it"))
	w.awaitEnd(c)

	w.Same("what was written before the access that is refused is there", good.Bytes, keepNear)
	w.Same("a refused Write changes nothing, nor does a refused Read or atomic", x.mr.Bytes, keepFar)
	w.Same("a refused Read brings nothing", near.Bytes, keepNear)
	x.checkInitiator(op)
	for i, wc := range c.BQ.Of(verbs.Recv) {
		if i >= x.got && wc.Status != verbs.StatusFlushed && (i > x.got || !x.hasTakenSend(wc) && !x.hasUsedReceive(wc)) {
			w.Errorf("receive %d of the target's completed as %+v: nothing may come after an access that was refused", i, wc)
		}
	}
	if n := len(c.BQ.Done); n != 3 {
		w.Errorf("%d completions at the target for 3 receives", n)
	}
}

// checkInitiator checks the completions of the side whose access was refused.
func (x *access) checkInitiator(op verbs.Opcode) {
	w := x.w
	want := x.want
	switch {
	case w.IWARP && op == verbs.Read:
		want = verbs.StatusFlushed
	case w.IWARP:
		want = verbs.StatusSuccess // it has left long ago, and was not signaled
	}
	sent := map[uint64]verbs.WC{}
	for _, wc := range x.c.AQ.Of(verbs.Send) {
		if _, twice := sent[wc.ID]; twice {
			w.Errorf("completed twice: %+v", wc)
		}
		sent[wc.ID] = wc
	}
	if wc := sent[2]; wc.Op != verbs.Write || wc.Status != verbs.StatusSuccess {
		w.Errorf("the Write before it completed as %+v: what is refused later is nothing to it", wc)
	}
	caught := w.IWARP && op == verbs.Write && w.hasDeviation(CaughtWriteFails) && sent[3].Status == verbs.StatusLocQPOp
	if wc, ok := sent[3]; !caught && (ok != (want != verbs.StatusSuccess) || wc.Status != want) {
		w.Errorf("what was refused completed (%v) as %+v; want %v: iWARP knows of Reads only that they were not answered, "+
			"and of Writes nothing", ok, wc, want)
	}
	if wc, ok := sent[4]; !ok || wc.Status != verbs.StatusFlushed && wc.Status != want && !x.hasTakenSend(wc) {
		w.Errorf("the Send behind it completed (%v) as %+v: it is flushed where something before it has failed", ok, wc)
	}
}

// hasTakenSend reports whether a Send has arrived although the Read before it was refused.
func (x *access) hasTakenSend(wc verbs.WC) bool {
	return wc.Status == verbs.StatusSuccess && x.wr.Op == verbs.Read && x.w.hasDeviation(SentBehindRefused)
}

// hasUsedReceive reports whether a receive was taken for a Write with immediate data before that
// was refused. It then fails in its own way, or is flushed.
func (x *access) hasUsedReceive(wc verbs.WC) bool {
	return x.wr.Op == verbs.WriteWithImm && wc.Status != verbs.StatusSuccess
}

// awaitEnd waits for the end of a connection that the passive side has given up because of an
// access by the active side. On iWARP both sides are notified of the end and its reason. On
// InfiniBand only the requester gets a completion, and the owners have to disconnect.
func (w *world) awaitEnd(c *sides.Link) {
	w.Helper()
	if !w.IWARP {
		w.Until("the requester's failure", func() bool { return countFailed(c.AQ.Of(verbs.Send)) > 0 })
		w.WantState("InfiniBand leaves the disconnect to the owner", c.Active, states.Connected)
		w.Must(c.Active.Disconnect())
	}
	active, passive := w.Disconnected(c)
	if w.IWARP && (passive.Err == nil || active.Err == nil) && !w.hasDeviation(EndsWithoutReason) {
		w.Errorf("the target was disconnected with %v, the requester with %v: both must learn that the end was not orderly", passive.Err, active.Err)
	}
	w.Settle()
}

func countFailed(wc []verbs.WC) int { return len(wc) - sides.Succeeded(wc) }

// takenBack checks that the receive of a Send with invalidate names the invalidated key. Other keys
// stay valid, and the memory stays allocated.
func takenBack(w *world) {
	c := w.Connected(3)
	near := w.Memory(c.AQ, 64, 0, 1)
	one, two := w.Memory(c.BQ, 64, sides.RemoteAll, 2), w.Memory(c.BQ, 64, sides.RemoteAll, 3)
	w.Must(c.AQ.Write(1, 0, sides.Part(near, 0, 32), one, 0))
	w.Must(c.AQ.Post(&verbs.SendWR{
		ID: 2, Op: verbs.SendWithInvalidate, Flags: verbs.Signaled | verbs.Solicited, Inline: []byte("done"), RKey: one.RKey,
	}))
	w.Must(c.AQ.Write(3, 0, sides.Part(near, 32, 32), two, 0))
	w.Barrier(c.AQ, c.BQ)
	w.Sent("with its own opcode", c.AQ)
	recv := c.BQ.Of(verbs.Recv)
	if recv[0].InvalidatedRKey != one.RKey || recv[0].Bytes != 4 || recv[0].Status != verbs.StatusSuccess {
		w.Errorf("received %+v, want the key %#x that was taken back", recv[0], one.RKey)
	}
	if recv[1].InvalidatedRKey != 0 {
		w.Errorf("received %+v: a plain Send takes no key back", recv[1])
	}
	w.Same("what was written before the key was taken back", one.Bytes[:32], near.Bytes[:32])
	w.Same("another region's key stays", two.Bytes[:32], near.Bytes[32:])
	w.Must(c.Passive.Device().Free(one))
}

// canInvalidate reports whether the device can invalidate keys.
func (w *world) canInvalidate() bool {
	w.Helper()
	return w.hasFeature(func(a verbs.DeviceAttr) bool { return a.Invalidates }, &verbs.SendWR{Op: verbs.SendWithInvalidate, RKey: 1})
}

// badInvalidate checks that a Send with a key that it must not invalidate fails the receive and
// ends the connection.
func badInvalidate(w *world, key func(*world, *sides.Link) uint32) {
	c := w.Connected(3)
	bad := key(w, c)
	w.Must(c.AQ.Post(&verbs.SendWR{ID: 2, Op: verbs.SendWithInvalidate, Flags: verbs.Signaled, Inline: []byte("back"), RKey: bad}))
	w.awaitEnd(c)
	recv := c.BQ.Of(verbs.Recv)
	if len(recv) != 3 {
		w.Fatalf("%d completions of 3 receives", len(recv))
	}
	i := sides.Succeeded(recv)
	if recv[i].Status != verbs.StatusRemInvReq || recv[i].InvalidatedRKey != 0 {
		w.Errorf("received %+v, want %v: nothing was taken back", recv[i], verbs.StatusRemInvReq)
	}
	for _, wc := range recv[i+1:] {
		if wc.Status != verbs.StatusFlushed {
			w.Errorf("received %+v behind it, want %v", wc, verbs.StatusFlushed)
		}
	}
}

// besideAnother checks that a violation on one connection affects neither another connection on the
// same device nor the memory that both use.
func besideAnother(w *world) {
	bad, good := w.Connected(1), w.Connected(1)
	near, far := w.Memory(good.AQ, 64, verbs.LocalWrite, 1), w.Memory(good.BQ, 64, sides.RemoteAll, 2)
	back := w.Memory(good.AQ, 64, verbs.LocalWrite, 3)
	w.Must(bad.AQ.Write(1, verbs.Signaled, sides.Part(near, 0, 64), far, 1))
	w.awaitEnd(bad)
	w.Must(good.AQ.Write(1, verbs.Signaled, sides.Part(near, 0, 64), far, 0))
	w.Must(good.AQ.Read(2, verbs.Signaled, sides.Part(back, 0, 64), far, 0))
	w.Barrier(good.AQ, good.BQ)
	w.Sent("work on the other connection", good.AQ)
	w.Same("and its memory", back.Bytes, near.Bytes)
	w.WantQuiet("nobody else is notified")
}
