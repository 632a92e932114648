package workload

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// listener is a Proto.Actor process that calls a function with each message, on the sender's
// goroutine.
type listener struct{ got func(msg any) }

// SendUserMessage implements actor.Process.
func (l *listener) SendUserMessage(_ *actor.PID, msg any) { l.got(actor.UnwrapEnvelopeMessage(msg)) }

// SendSystemMessage implements actor.Process.
func (l *listener) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (l *listener) Stop(*actor.PID) {}

// newAddress creates an address whose messages are passed to got. It exists as long as the process,
// to detect late and duplicate messages.
func (h *connHost) newAddress(kind string, got func(msg any)) *actor.PID {
	pid, _ := h.p.System().ProcessRegistry.Add(&listener{got}, h.newName(kind))
	return pid
}

// sendCommand sends a command, whose answer goes to the ledger. then, if it is not nil, is called
// with the answer, on the loop of the identifier or on the sender's goroutine.
func (h *connHost) sendCommand(id *actor.PID, cmd rdma.Command, then func(answer any)) {
	q := h.w.ids.Asked(h.w.now(), keyOf(h.p, id), fmt.Sprintf("%T", cmd))
	p, due := h.p, h.dues.recordCommand(id.Id, cmd)
	sender := h.newAddress("asker", func(answer any) {
		if h.p != p {
			return // of a process that was killed
		}
		h.dues.recordAnswered(due)
		h.w.ids.Answered(h.w.now(), q, fmt.Sprintf("%T", answer))
		h.w.e.World.Trace("%s: %T of %s is answered: %T", p.Name(), cmd, id.Id, answer)
		if then != nil {
			then(answer)
		}
	})
	h.root.RequestWithCustomSender(id, cmd, sender)
}

// newClerk creates an address for the reports about an end's messages. group is its name in the
// ledger. then, if it is not nil, is called after each report.
func (h *connHost) newClerk(e *connEnd, group string, then func()) *actor.PID {
	return h.newAddress(group, func(msg any) {
		e.recordFate(group, msg)
		if then != nil {
			then()
		}
	})
}

// recordFate records a report about messages of an end.
func (e *connEnd) recordFate(group string, msg any) {
	if e.dead {
		return // of a process that was killed
	}
	f, n := oracle.Sent, 1
	switch m := msg.(type) {
	case *rdma.Sent:
	case *rdma.SendFailed:
		f, n = oracle.Unsent, m.Sends
		if errors.Is(m, rdma.ErrFlushed) {
			f = oracle.Unknown
		}
	case *actor.DeadLetterResponse:
		f = oracle.Dead
	default:
		e.c.w.e.failWorld("a Send of %s is answered with %T", e.key, msg)
		return
	}
	if f != oracle.Sent {
		e.countReceived(n)
	}
	e.out.Fate(e.c.w.now(), group, f, n)
}

// connObserver enters the actions of identifiers in the ledgers.
type connObserver struct {
	h       *connHost
	known   map[string]bool
	keys    map[rdma.Handle]string // of identifiers that have changed their state
	p       *world.Process
	samples int
}

func (o *connObserver) keyOf(id *actor.PID) string { return o.p.Name() + " " + id.GetId() }

// isKilled reports whether the process was killed: its actions at the end of the world do not
// count.
func (o *connObserver) isKilled() bool { return o.h.p != o.p }

// recordCreated records an identifier that is seen for the first time.
func (o *connObserver) recordCreated(k string, child bool) {
	if !o.known[k] {
		if o.known == nil {
			o.known = make(map[string]bool)
		}
		o.known[k] = true
		o.h.w.ids.Made(k, o.h.w.idFlavor(), child)
	}
}

// Transition implements rdma.Observer.
func (o *connObserver) Transition(id *actor.PID, h rdma.Handle, from, to rdma.State) {
	if o.isKilled() {
		return
	}
	k := o.keyOf(id)
	o.recordCreated(k, false)
	if o.keys == nil {
		o.keys = make(map[rdma.Handle]string)
	}
	o.keys[h] = k
	o.h.w.e.World.Trace("%s: %v to %v", k, from, to)
	o.h.w.ids.Transition(o.h.w.now(), k, uint64(h), from, to)
}

// Event implements rdma.Observer.
func (o *connObserver) Event(id *actor.PID, ev rdma.Event) {
	if o.isKilled() {
		return
	}
	k := o.keyOf(id)
	r, child := ev.(*rdma.ConnectRequest)
	o.recordCreated(k, child)
	if child && o.keys[r.Listener] != "" {
		o.h.w.ids.Child(k, o.keys[r.Listener])
	}
	o.h.w.e.World.Trace("%s sends %v", k, ev.Kind())
	o.h.w.ids.Event(o.h.w.now(), k, ev.Kind())
	if e := o.h.ends[id.GetId()]; e != nil && !e.dead {
		e.observeEvent(ev)
	}
	o.sampleBounds()
}

// Moved implements rdma.Observer.
func (o *connObserver) Moved(id *actor.PID, _ rdma.Handle, from, to string) {
	o.h.w.e.World.Trace("%s moves from %s to %s", o.keyOf(id), from, to)
}

// observeEvent handles an event that an end sends.
func (e *connEnd) observeEvent(ev rdma.Event) {
	now := e.c.w.now()
	e.judgeSetUp(ev)
	switch ev := ev.(type) {
	case *rdma.Established:
		e.judgePeer(ev)
		e.recordEstablished(ev)
	case *rdma.Disconnected:
		e.handleEnd(ev.Err)
	case *rdma.DeviceRemoval:
		e.handleEnd(errors.New("the device is gone"))
	case *rdma.Closed:
		if !e.closed {
			e.closed = true
			e.handleEnd(ev.Err)
			delivered, unsent, unknown := e.messageCounts(ev)
			e.out.Closed(now, delivered, unsent, unknown)
			e.restoreReplaced()
		}
	case *rdma.Received:
		e.recordDelivered(ev)
	case *rdma.SendFailed:
		e.full = e.full || e.established && !e.ended && errors.Is(ev, rdma.ErrQueueFull)
	case *rdma.Writable:
		e.full = false
	case *rdma.Done:
		e.handedOver(ev.Command)
	}
}

// messageCounts returns the message counts in the end's last event. Messages that a process
// received while it was killed are not in the ledger.
func (e *connEnd) messageCounts(ev *rdma.Closed) (delivered, unsent, unknown uint64) {
	delivered = ev.Delivered
	if p := e.otherEnd(); p != nil && p.dead {
		delivered = min(delivered, uint64(e.out.Count()))
	}
	return delivered, ev.Unsent, ev.Unknown + ev.Delivered - delivered
}

// recordDelivered records a message on its way to the owner.
func (e *connEnd) recordDelivered(m *rdma.Received) {
	p := e.otherEnd()
	if p == nil {
		e.c.w.e.failWorld("%s has a message, and no peer", e.key)
		return
	}
	n, ok := p.out.Received(e.c.w.now(), m.Data)
	if !ok {
		return
	}
	e.arrived = append(e.arrived, arrival{n, e.o})
	p.countReceived(1)
	if w := p.memory.after[n]; w != nil {
		w.Arrived()
	}
}
