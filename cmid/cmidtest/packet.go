package cmidtest

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// endpoint is one end of a connection: an identifier on an instance. The zero endpoint is nobody.
type endpoint struct {
	in *instance
	h  cmid.Handle
}

// packet is one message from identifier to identifier, or work that an instance leaves itself.
type packet struct {
	kind     Message
	from, to endpoint
	src, dst netip.Addr
	cm       *message  // of connection management; never changed once sent
	listener *binding  // MsgREQ, MsgSIDRREQ: who has one unread request more
	fn       func()    // msgLocal
	data     *buffer   // MsgSend, MsgWrite, MsgReadResponse, MsgDatagram
	seq      uint64    // of the work request, or of the one that is answered
	mem      remote    // MsgWrite, MsgRead, MsgAtomic; of MsgSend the key to invalidate
	flags    sendFlags // MsgSend, MsgDatagram
	imm      uint32    // MsgSend, MsgDatagram with flagImmediate
	atomic   atomicOp  // MsgAtomic
	ud       datagram  // MsgDatagram
	status   ack       // MsgAck
	delay    time.Duration
}

// message is what connection management says.
type message struct {
	ps       cmid.PortSpace
	src, dst cmid.Addr
	private  []byte
	param    cmid.ConnParam
	status   int32 // MsgREJ: the reason, MsgSIDRREP: the status, MsgDREQ on iWARP: a negative errno
	err      error // MsgDREQ on iWARP: why
}

// sendFlags say what a message asks for besides being received.
type sendFlags uint8

const (
	flagSolicited  sendFlags = 1 << iota
	flagInvalidate           // take mem.key back
	flagImmediate            // tell imm
)

// buffer holds a message's bytes on their way. They are copied when it leaves, so that a queue
// pair that is flushed meanwhile gives its memory back at once.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func (p *packet) release() {
	if p.data != nil {
		p.data.b = p.data.b[:0]
		buffers.Put(p.data)
		p.data = nil
	}
}

// inbox is what arrives for an instance, from any goroutine.
type inbox struct {
	mu        sync.Mutex
	in        []packet
	scheduled bool
	closed    bool
	ice       *ice                      // that the loop stands in; nil: it runs
	moved     map[cmid.Handle]*detached // where what comes for an identifier is passed on to
}

// send gives p to the network; false when it is lost there.
func (f *Fabric) send(p packet) bool {
	if p.to.in == nil {
		p.release()
		return false
	}
	switch f.fateOf(&p) {
	case fateLost:
		f.read(p.listener)
		p.release()
		return false
	case fateWaits:
		f.unacknowledged(p.from)
	case fateArrives:
		p.to.in.put(p)
	}
	return true
}

// put queues p and has the instance run, on its loop, never inside the caller.
func (in *instance) put(p packet) {
	in.box.mu.Lock()
	if now := in.box.moved[p.to.h]; now != nil {
		in.box.mu.Unlock()
		now.put(p)
		return
	}
	if in.box.closed {
		in.box.mu.Unlock()
		in.f.read(p.listener)
		p.release()
		return
	}
	in.box.in = append(in.box.in, p)
	in.schedule()
}

// kick has the instance run although nothing has arrived.
func (in *instance) kick() {
	in.box.mu.Lock()
	in.schedule()
}

// schedule is called with box.mu held and releases it.
func (in *instance) schedule() {
	first := !in.box.scheduled && !in.box.closed
	in.box.scheduled = in.box.scheduled || first
	if i := in.box.ice; i != nil {
		select {
		case i.came <- struct{}{}:
		default:
		}
	}
	in.box.mu.Unlock()
	if first {
		_ = in.loop.Schedule(in) // refused after the loop's end only: nobody is there any more
	}
}

// later runs fn on the loop, after what has arrived already.
func (in *instance) later(fn func()) { in.put(packet{kind: msgLocal, fn: fn}) }

// Run takes what has arrived, then tells of completions.
func (in *instance) Run(int) (more bool) {
	in.box.mu.Lock()
	in.box.scheduled = false
	in.box.mu.Unlock()
	left := true
	defer func() {
		if left { // by the program's panic or runtime.Goexit: what is not done yet is nobody's loss
			in.kick()
		}
	}()
	in.takeIn()
	if !in.closed {
		in.tellCompletions()
	}
	left = false
	return false
}

// takeIn takes what has arrived.
func (in *instance) takeIn() {
	in.box.mu.Lock()
	batch := in.box.in
	in.box.in, in.spare = in.spare[:0], nil
	in.box.mu.Unlock()
	if len(in.batch) > 0 { // the program did not return from one before these
		batch = slices.Concat(in.batch, batch)
	}
	for in.batch = batch; len(in.batch) > 0; {
		p := &in.batch[0]
		in.batch = in.batch[1:]
		if in.closed {
			in.f.read(p.listener)
			p.release()
			continue
		}
		in.arrive(p)
	}
	clear(batch)
	in.spare = batch
}

// arrive handles p now, or when its delay has passed. Nothing overtakes what came from the same
// place before it.
func (in *instance) arrive(p *packet) {
	if p.kind == msgLocal {
		p.fn()
		return
	}
	now := in.now()
	due := now.Add(p.delay)
	if last := in.lastDue[p.from.in]; last.After(due) {
		due = last
	}
	if !due.After(now) {
		in.handle(p)
		return
	}
	in.putLate(latePacket{*p, due})
}

type latePacket struct {
	packet
	due time.Time
}

// deliverLate handles what is due, and tells of it.
func (in *instance) deliverLate() {
	left := true
	defer func() {
		if left { // as in Run
			in.later(in.deliverLate)
		}
	}()
	in.takeLate()
	if !in.closed {
		in.tellCompletions()
	}
	left = false
}

// takeLate handles what is due.
func (in *instance) takeLate() {
	now := in.now()
	for len(in.late) > 0 && !in.late[0].due.After(now) {
		p := in.late[0].packet
		in.late[0] = latePacket{}
		in.late = in.late[1:]
		in.handle(&p)
		if in.closed {
			return
		}
	}
	if len(in.late) == 0 {
		in.late = nil
		clear(in.lastDue)
		return
	}
	in.lateTimer.Reset(in.late[0].due.Sub(now))
}

// handle is the one place where messages come in.
func (in *instance) handle(p *packet) {
	id, elsewhere := in.meant(p)
	if elsewhere {
		return
	}
	switch p.kind {
	case MsgREQ, MsgSIDRREQ:
		in.gotRequest(id, p)
	case MsgMRA:
		id.gotMoreTime()
	case MsgREP:
		in.gotReply(id, p)
	case MsgRTU:
		id.gotReady(p)
	case MsgREJ:
		id.gotReject(p)
	case MsgDREQ:
		in.gotDisconnect(id, p)
	case MsgDREP:
		id.gotDisconnectReply(p)
	case MsgSIDRREP:
		id.gotLookupReply(p)
	case MsgSend, MsgWrite, MsgRead, MsgAtomic:
		in.gotWork(id, p)
	case MsgDatagram:
		id.gotDatagram(p)
	case MsgAck:
		id.gotAck(p)
	case MsgReadResponse:
		id.gotReadResponse(p)
	}
	p.release()
}

// meant is whom a message is for. One who asks again, or has changed his mind, knows the listener
// only; he means the child, which may have been migrated: then p was passed on.
func (in *instance) meant(p *packet) (id *ident, elsewhere bool) {
	id = in.ids[p.to.h]
	switch p.kind {
	case MsgREJ, MsgDREQ:
		if id != nil && id.state != states.Listening {
			return id, false
		}
	case MsgREQ, MsgSIDRREQ:
	default:
		return id, false
	}
	switch child := in.host.child(p.from); {
	case child.in == nil:
		return id, false
	case in.ids[child.h] != nil:
		return in.ids[child.h], false
	case child == p.to:
		return nil, false // destroyed meanwhile
	default:
		p.to = child
		child.in.put(*p)
		return nil, true
	}
}
