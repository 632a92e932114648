package remoting

import (
	"errors"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// reporter calls the user's code that a link has no answer from: subscribers of events and of dead
// letters. It is an actor off the loops, one for each link, so that who blocks there delays no
// other peer.
type reporter struct {
	roster  *roster
	pid     *actor.PID
	waiting atomic.Int64 // bytes
	p       *peer
	gap     uint64 // so many of those that were not reported have been published
	over    bool   // it has stopped; guarded by the roster's mu
}

// eventBytes is the size at which an event counts.
const eventBytes = 256

// The messages to a reporter.
type (
	event struct {
		event any
		bytes int
	}
	letter struct { // an incoming message that was refused
		target *actor.PID
		msg    *actor.MessageEnvelope
		bytes  int
	}
	letters struct { // messages that were not sent
		peer    string
		packets []outbox.Packet
		bytes   int
	}
)

// resuming is the supervision of a link, and of its reporter. What panics in them is the user's
// code, on behalf of one message.
var resuming = actor.WithGuardian(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective }))

// newReporterLocked makes the reporter of a link. r.mu is locked.
func (r *roster) newReporterLocked(p *peer, link *actor.PID) *reporter {
	rep := &reporter{roster: r, p: p}
	pid, err := r.sys.Root.SpawnNamed(actor.PropsFromFunc(rep.handleMessage, r.rt.OffLoop(), resuming), link.Id+"/report")
	if err != nil { // the name is the link's own
		panic("remoting: BUG: " + err.Error())
	}
	rep.pid = pid
	r.reporters++
	return rep
}

// stopAfterQueue stops the reporter after its queue.
func (r *reporter) stopAfterQueue() { r.roster.sys.Root.Poison(r.pid) }

// takeRoom reports whether there is room for so many things that a subscriber is to be called for.
// One that is larger than all the room goes alone.
func (r *reporter) takeRoom(things, bytes int) bool {
	waiting := r.waiting.Add(int64(bytes))
	if waiting > int64(2*r.roster.cfg.Queue) && waiting > int64(bytes) {
		r.waiting.Add(-int64(bytes))
		r.p.unreported.Add(uint64(things))
		return false
	}
	return true
}

// publishEvent publishes an event.
func (r *reporter) publishEvent(ctx actor.Context, ev any) {
	if n := sizeOf(ev); r.takeRoom(1, n) {
		ctx.Send(r.pid, &event{ev, n})
	}
}

// sizeOf returns the size at which an event counts. Names and reasons may be the peer's, and long.
func sizeOf(ev any) int {
	no, ok := ev.(*Refused)
	if !ok {
		return eventBytes
	}
	n := eventBytes + len(no.Target.GetId()) + len(no.Sender.GetId()) + len(no.Sender.GetAddress()) + len(no.Err.Error())
	var panicked *codec.PanicError
	if errors.As(no.Err, &panicked) {
		n += len(panicked.Stack)
	}
	return n
}

// deadLetter makes a message of the peer's a dead letter.
func (r *reporter) deadLetter(ctx actor.Context, target *actor.PID, msg any, bytes int, sender *actor.PID) {
	if n := eventBytes + bytes; r.takeRoom(1, n) {
		ctx.Send(r.pid, &letter{target, &actor.MessageEnvelope{Message: msg, Sender: sender}, n})
	}
}

// deadLetters turns unsent messages into dead letters. Those of futures were answered.
func (r *reporter) deadLetters(peer string, packets []outbox.Packet) {
	n, records := 0, 0
	for i := range packets {
		n += len(packets[i].Bytes())
		records += packets[i].Records
	}
	if n > 0 && r.takeRoom(records, n) {
		r.roster.sys.Root.Send(r.pid, &letters{peer, packets, n})
	}
}

func (r *reporter) handleMessage(ctx actor.Context) {
	r.callSubscribers(ctx.Message())
	if r.waiting.Load() == 0 {
		r.catchUp()
	}
}

// catchUp publishes how much has found no room since the last time.
func (r *reporter) catchUp() {
	if n := r.p.unreported.Load(); n != r.gap {
		d := &Unreported{Peer: r.p.peerInfo().Peer, Count: n - r.gap}
		r.gap = n
		r.roster.sys.EventStream.Publish(d)
	}
}

func (r *reporter) callSubscribers(m any) {
	switch m := m.(type) {
	case *event:
		defer r.waiting.Add(-int64(m.bytes))
		r.roster.sys.EventStream.Publish(m.event)
	case *letter:
		defer r.waiting.Add(-int64(m.bytes))
		r.roster.sys.DeadLetter.SendUserMessage(m.target, m.msg)
	case *actor.Stopping:
		r.catchUp() // also if a subscriber has panicked
	case *actor.Stopped:
		r.roster.mu.Lock()
		defer r.roster.mu.Unlock()
		r.roster.reporters--
		r.over = true
		r.roster.forgetLocked(r.p, r.p.peerInfo().Counts)
		r.roster.emptiedLocked()
	case *letters:
		defer r.waiting.Add(-int64(m.bytes))
		for i := range m.packets {
			m.packets[i].Each(func(rec *frame.Record) { r.deadRecord(m.peer, rec) })
			m.packets[i].Free()
		}
	}
}

// deadRecord turns an outgoing record into a dead letter: its message is decoded again.
func (r *reporter) deadRecord(peer string, rec *frame.Record) {
	n := r.roster
	target := &actor.PID{Address: peer, Id: rec.Target, RequestId: rec.TargetRequest}
	if rec.Kind == frame.KindStop {
		n.sys.DeadLetter.SendSystemMessage(target, &actor.Stop{})
		return
	}
	if rec.Kind != frame.KindUser || rec.Sender.Address == "" && tables.IsFuture(rec.Sender.ID) {
		return
	}
	msg, err := n.cfg.Codec.Decode(rec.Type, rec.Body)
	if err != nil {
		n.rt.Logger().Warn("remoting: a message was not sent, and cannot be decoded", "peer", plain.Quote(peer), "target", plain.Quote(rec.Target), "type", rec.Type, "err", err)
		return
	}
	var sender *actor.PID
	if rec.Sender.ID != "" {
		if sender = actor.NewPID(rec.Sender.Address, rec.Sender.ID); sender.Address == "" {
			sender.Address = n.name
		}
	}
	n.sys.DeadLetter.SendUserMessage(target, &actor.MessageEnvelope{Message: msg, Sender: sender})
}
