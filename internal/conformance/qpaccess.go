package conformance

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/verbs"
)

// qpAccessScenarios test the access rights of a queue pair.
var qpAccessScenarios = func() scenarios {
	s := scenarios{
		"what is let in later":                   letIn,
		"one right and not the other":            halfOpen,
		"rights are taken away":                  func(w *world) { w.requireBarred(w.shutAgain(), verbs.Write) },
		"a queue pair that is destroyed":         accessDestroyed,
		"keys are not taken back without rights": barredInvalidate,
	}
	for name, op := range map[string]verbs.Opcode{
		"Write": verbs.Write, "Read": verbs.Read, "atomic": verbs.AtomicFetchAdd, "Write with immediate data": verbs.WriteWithImm,
	} {
		s[name+" without any right"] = func(w *world) { w.requireBarred(w.connectShut(), op) }
		s[name+" without any right, by the passive side"] = func(w *world) { w.requireBarred(reverseWay(w.connectShut()), op) }
	}
	return s.where((*world).canAccess)
}()

// canAccess reports whether queue pairs have access rights.
func (w *world) canAccess() bool {
	w.Helper()
	can := w.hasFeature(func(a verbs.DeviceAttr) bool { return a.QPAccess })
	if !can {
		c := w.Connected(0)
		if err := c.AQ.QP.SetAccess(0); !errors.Is(err, verbs.ErrNotSupported) {
			w.Errorf("the rights of a queue pair that has none: %v, want ErrNotSupported", err)
		}
	}
	return can
}

// way is a connection, and the direction in which memory is used.
type way struct {
	*sides.Link
	from, to *sides.Queues
}

// reverseWay returns the other way.
func reverseWay(c way) way { return way{c.Link, c.to, c.from} }

// connectShut makes a connection whose queue pairs allow their peers nothing.
func (w *world) connectShut() way {
	w.Helper()
	c := &sides.Link{}
	c.Listener, c.Active = w.Pair(tcp)
	c.AQ = w.Queues(c.Active, 3)
	w.Must(c.AQ.QP.SetAccess(0))
	w.Must(c.Active.Connect(nil, nil))
	c.Passive, _ = w.B.Request()
	c.BQ = w.Queues(c.Passive, 3)
	w.Must(c.BQ.QP.SetAccess(0))
	w.Must(c.Passive.Accept(nil, nil))
	w.Established(c)
	return way{c, c.AQ, c.BQ}
}

// shutAgain returns the way shut, with rights in between.
func (w *world) shutAgain() way {
	w.Helper()
	c := w.connectShut()
	w.Must(c.BQ.QP.SetAccess(atomicAll))
	near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
	w.Must(c.AQ.Write(1, 0, sides.Part(near, 0, 64), far, 0))
	w.Barrier(c.AQ, c.BQ)
	w.Same("a Write while it is allowed", far.Bytes, near.Bytes)
	w.Must(c.BQ.QP.SetAccess(0))
	c.AQ.Forget()
	return c
}

// hasOp reports whether the device has an operation.
func (c way) hasOp(op verbs.Opcode) bool {
	switch a := c.Active.Device().Attr(); {
	case op.Atomic():
		return a.Atomics
	case op == verbs.WriteWithImm:
		return a.Immediate
	}
	return true
}

// requireBarred requires that an operation which the queue pair does not allow ends the connection
// and changes nothing, and that Sends are not concerned.
func (w *world) requireBarred(c way, op verbs.Opcode) {
	w.Helper()
	if !c.hasOp(op) {
		return
	}
	near, far := w.Memory(c.from, 64, verbs.LocalWrite, 1), w.Memory(c.to, 64, c.allAccess(), 2)
	keepNear, keepFar := bytes.Clone(near.Bytes), bytes.Clone(far.Bytes)
	w.Barrier(c.from, c.to)
	n := 64
	if op.Atomic() {
		n = verbs.AtomicLen
	}
	w.Must(c.from.Post(&verbs.SendWR{
		ID: 3, Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{sides.Part(near, 0, n)}, RemoteAddr: far.Addr, RKey: far.RKey, CompareAdd: 1,
	}))
	switch {
	case c.from == c.AQ:
		w.awaitEnd(c.Link)
	case w.IWARP:
		w.Disconnected(c.Link)
	default:
		w.Until("the requester's failure", func() bool { return countFailed(c.from.Of(verbs.Send)) > 0 })
	}
	w.Same("what a queue pair does not allow changes nothing", far.Bytes, keepFar)
	w.Same("and brings nothing", near.Bytes, keepNear)
	for _, wc := range c.from.Of(verbs.Send) {
		if wc.ID == 3 && !w.IWARP && wc.Status != verbs.StatusRemInvReq {
			w.Errorf("it completes as %+v, want %v", wc, verbs.StatusRemInvReq)
		}
	}
}

// allAccess returns all rights that a region can have.
func (c way) allAccess() verbs.Access {
	if c.hasOp(verbs.AtomicFetchAdd) {
		return atomicAll
	}
	return sides.RemoteAll
}

// letIn checks that a connection which is established without rights serves everything once it has
// them, in both directions.
func letIn(w *world) {
	c := w.connectShut()
	w.Barrier(c.AQ, c.BQ)
	w.Barrier(c.BQ, c.AQ)
	for _, c := range [...]way{c, reverseWay(c)} {
		w.Must(c.to.QP.SetAccess(verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic))
		w.Sent("the Send of the barrier", c.from) // it may complete after its receive
		c.from.Forget()
		near, far := w.Memory(c.from, 64, verbs.LocalWrite, 1), w.Memory(c.to, 64, c.allAccess(), 2)
		want := bytes.Clone(near.Bytes)
		w.Must(c.from.Write(1, verbs.Signaled, sides.Part(near, 0, 64), far, 0))
		w.Must(c.from.Read(2, verbs.Signaled, sides.Part(near, 0, 64), far, 0))
		w.Sent("operations that are allowed by now", c.from)
		w.Same("Write", far.Bytes, want)
		w.Same("Read", near.Bytes, want)
		if c.hasOp(verbs.AtomicFetchAdd) {
			w.Must(c.from.FetchAdd(3, verbs.Signaled, near, far, 1))
			w.Sent("an atomic operation", c.from)
		}
	}
	w.WantQuiet("nobody is told of rights")
}

// halfOpen checks that each right is one of its own.
func halfOpen(w *world) {
	c := w.connectShut()
	w.Must(c.BQ.QP.SetAccess(verbs.RemoteWrite))
	near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
	w.Must(c.AQ.Write(1, verbs.Signaled, sides.Part(near, 0, 64), far, 0))
	w.Sent("a Write that is allowed", c.AQ)
	c.AQ.Forget()
	w.requireBarred(c, verbs.Read)
	w.Same("and it is there", far.Bytes, near.Bytes)
}

func accessDestroyed(w *world) {
	c := w.Connected(0)
	w.Must(c.BQ.QP.Destroy())
	w.WantErr("the rights of a queue pair that is destroyed", c.BQ.QP.SetAccess(0), unix.EINVAL)
}

// barredInvalidate checks that a peer which may do nothing cannot take keys back either.
func barredInvalidate(w *world) {
	if !w.canInvalidate() {
		return
	}
	badInvalidate(w, func(w *world, c *sides.Link) uint32 {
		w.Must(c.BQ.QP.SetAccess(0))
		return w.Memory(c.BQ, 64, sides.RemoteAll, 2).RKey
	})
}
