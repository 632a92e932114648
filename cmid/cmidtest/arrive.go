package cmidtest

import (
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// Run handles arrived messages. The loop calls it.
func (in *instance) Run(int) (more bool) {
	in.box.mu.Lock()
	in.box.scheduled = false
	in.box.mu.Unlock()
	in.runTurn(in.takeIn, in.scheduleTurn)
	return false
}

// runTurn calls handle, then gives out receives and notifies the program of completions. If the
// program does not return, runTurn calls again, which schedules the rest of the work.
func (in *instance) runTurn(handle, again func()) {
	returned := false
	defer callUnlessReturned(&returned, again)
	handle()
	if !in.closed {
		in.serveWaiting()
		in.notifyCompletions()
	}
	returned = true
}

// takeIn handles arrived messages.
func (in *instance) takeIn() {
	in.box.mu.Lock()
	batch := in.box.in
	in.box.in, in.spare = in.spare[:0], nil
	in.box.mu.Unlock()
	if len(in.batch) > 0 { // the program did not return from an earlier one
		batch = slices.Concat(in.batch, batch)
	}
	for in.batch = batch; len(in.batch) > 0; {
		p := &in.batch[0]
		in.batch = in.batch[1:]
		if in.closed {
			in.f.dropPacket(p)
			continue
		}
		in.receivePacket(p)
	}
	clear(batch)
	in.spare = batch
}

// receivePacket handles p now, or when its delay has passed. Packets from the same instance stay in
// order.
func (in *instance) receivePacket(p *packet) {
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
		in.handlePacket(p)
		return
	}
	p.due = due
	in.putLate(*p)
}

// putLate keeps p until it is due.
func (in *instance) putLate(p packet) {
	i := len(in.late)
	for i > 0 && in.late[i-1].due.After(p.due) {
		i--
	}
	in.late = slices.Insert(in.late, i, p)
	if in.lastDue[p.from.in].Before(p.due) {
		in.lastDue[p.from.in] = p.due
	}
	if i == 0 {
		in.lateTimer.Reset(max(p.due.Sub(in.now()), time.Duration(0)))
	}
}

// deliverLate handles due messages.
func (in *instance) deliverLate() {
	in.runTurn(in.takeLate, func() { in.runLater(in.deliverLate) })
}

// takeLate handles due messages, and sets the timer for the rest.
func (in *instance) takeLate() {
	now := in.now()
	for len(in.late) > 0 && !in.late[0].due.After(now) {
		p := in.late[0]
		in.late[0] = packet{}
		in.late = in.late[1:]
		in.handlePacket(&p)
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

// handlePacket handles every message that comes in.
func (in *instance) handlePacket(p *packet) {
	id, elsewhere := in.driverIDFor(p)
	if elsewhere {
		return
	}
	switch p.kind {
	case MsgREQ, MsgSIDRREQ:
		in.gotRequest(id, p)
	case MsgREP:
		in.gotReply(id, p)
	case MsgDREQ:
		in.gotDisconnect(id, p)
	case MsgSend, MsgWrite, MsgRead, MsgAtomic:
		in.gotWork(id, p)
	default:
		if id != nil {
			id.gotAnswer(p)
		}
	}
	p.release()
	in.serveWaiting() // the next message may be the end of the connection
}

// gotAnswer handles the messages that are dropped when their identifier does not exist.
func (id *driverID) gotAnswer(p *packet) {
	switch p.kind {
	case MsgMRA:
		id.gotMoreTime()
	case MsgRTU:
		id.gotReady(p)
	case MsgREJ:
		id.gotReject(p)
	case MsgDREP:
		id.gotDisconnectReply(p)
	case MsgSIDRREP:
		id.gotLookupReply(p)
	case MsgAck:
		id.qp.gotAck(p)
	case MsgReadResponse:
		id.qp.gotReadResponse(p)
	case MsgDatagram:
		id.qp.gotDatagram(p)
	default:
	}
}

// driverIDFor returns the identifier that a message is for. A peer that repeats or cancels its
// request addresses the listener, because it does not know the child. The message is for the child.
// If the child has migrated, driverIDFor passes p on to its new loop and returns elsewhere.
func (in *instance) driverIDFor(p *packet) (id *driverID, elsewhere bool) {
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
	asked, ok := in.host.requests.Load(p.from)
	if !ok {
		return id, false
	}
	switch child := asked.(endpoint); {
	case in.ids[child.h] != nil:
		return in.ids[child.h], false
	case child == p.to:
		return nil, false // destroyed in between
	default:
		p.to = child
		child.in.queuePacket(*p)
		return nil, true
	}
}
