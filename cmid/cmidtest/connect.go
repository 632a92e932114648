package cmidtest

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// fillParam returns a command's parameters, with the device's values where the command has none. It
// returns EINVAL for more Reads than the device supports. librdmacm finds the device through the
// queue pair, so an identifier without a queue pair is not checked, except on the embedded device.
func (id *driverID) fillParam(p *cmid.ConnParam, depthIn, depthOut uint8) (cmid.ConnParam, error) {
	out := cmid.ConnParam{ResponderResources: deviceMax, InitiatorDepth: deviceMax, RetryCount: retries, RNRRetryCount: retriesNoEnd}
	if p != nil {
		out = *p
	}
	if out.ResponderResources == deviceMax {
		out.ResponderResources = depthIn
	}
	if out.InitiatorDepth == deviceMax {
		out.InitiatorDepth = depthOut
	}
	out.RetryCount, out.RNRRetryCount = min(out.RetryCount, 7), min(out.RNRRetryCount, 7)
	if id.in.f.embedded { // TCP retries
		out = cmid.ConnParam{ResponderResources: out.ResponderResources, InitiatorDepth: out.InitiatorDepth}
	}
	if id.qp != nil {
		out.QPNum = id.qp.num
	}
	judged := id.in.f.embedded || id.qp != nil
	if judged && max(out.ResponderResources, out.InitiatorDepth) > id.in.f.depth {
		return out, unix.EINVAL
	}
	return out, nil
}

// maxPrivateData returns how much private data a message can carry: connected for a connection,
// lookup for a service lookup.
func (id *driverID) maxPrivateData(connected, lookup int) int {
	if id.ps.Datagram() {
		return lookup
	}
	return connected
}

// connect implements rdma_connect(3).
func (id *driverID) connect(c *cmid.Connect) error {
	if len(c.PrivateData) > id.maxPrivateData(id.Limits().ConnectData, udConnect) || id.in.f.iwarp && id.qp == nil {
		return unix.EINVAL
	}
	own, err := id.fillParam(c.Param, id.in.f.depth, id.in.f.depth)
	if err != nil {
		return err
	}
	id.own = own
	m := &message{ps: id.ps, src: id.local, dst: id.peer, private: cloneBytes(c.PrivateData), param: id.own, class: id.network.class}
	m.param.MinRNRTimer = 0 // no message carries it
	id.network.ofRequest = m.class
	id.state = states.Connecting
	if id.in.f.iwarp {
		return id.stream.open(c, m)
	}
	id.requestConnection(m)
	id.cm.repeat(func() { id.requestConnection(m) }, id.failUnanswered)
	return nil
}

// requestConnection sends a REQ or SIDR REQ to the listener that the destination has now.
func (id *driverID) requestConnection(m *message) {
	p := id.cm.newPacket(MsgREQ, m)
	if id.ps.Datagram() {
		p.kind = MsgSIDRREQ
	}
	b, what := id.findListener(id.cm.far)
	if child, ok := id.cm.requested(); ok && what != foundSilence {
		p.to = child // whether its listener is still there, or has room, or not
		id.in.f.sendPacket(p)
		return
	}
	switch what {
	case foundListener:
		id.cm.sendRequest(p, b)
	case foundNobody:
		id.in.f.rejectUnaccepted(&p, endpoint{}, cmid.RejectInvalidServiceID, sidrUnsupported)
	case foundOther:
		id.in.f.rejectUnaccepted(&p, endpoint{}, cmid.RejectConsumerDefined, sidrUnsupported)
	case foundFull:
		if id.ps.Datagram() {
			id.in.f.rejectUnaccepted(&p, endpoint{}, 0, sidrReject)
		} // else it is dropped, and its repetition may find room
	case foundSilence:
	}
}

// rejectUnaccepted answers p as a kernel does for a request that no program accepts.
func (f *Fabric) rejectUnaccepted(p *packet, from endpoint, reason cmid.RejectReason, sidr int32) {
	switch {
	case p.kind == MsgSIDRREQ:
		f.answerPacket(p, from, MsgSIDRREP, sidr)
	case f.iwarp:
		f.answerPacket(p, from, MsgDREQ, connReset)
	default:
		f.answerPacket(p, from, MsgREJ, int32(reason))
	}
}

// gotRequest makes the identifier of a new request, and delivers the ConnectRequest.
func (in *instance) gotRequest(listener *driverID, p *packet) {
	in.f.countRead(p.listener)
	if listener != nil && listener.cm.key == p.from {
		listener.requestedAgain()
		return
	}
	if listener == nil || listener.state != states.Listening {
		in.f.rejectUnaccepted(p, endpoint{}, cmid.RejectConsumerDefined, sidrReject) // it has gone
		return
	}
	in.f.mu.Lock()
	dev := in.host.ownLocked(p.cm.dst.Addr())
	if dev == nil && isAny(p.cm.dst.Addr()) && len(in.host.devices) > 0 {
		dev = in.host.devices[0]
	}
	in.f.mu.Unlock()
	if dev == nil {
		return // removed on the way
	}
	child := in.newDriverID(in.up.NewHandle(), p.cm.ps)
	child.state = states.ConnectRequested
	child.local, child.peer = p.cm.dst, p.cm.src
	if isAny(child.local.Addr()) {
		child.local = cmid.AddrFrom(loopbackAddr(p.cm.dst.Addr()), p.cm.dst.Port())
	}
	child.cm.far, child.cm.key, child.dev = p.from, p.from, dev
	// until the program answers, own has the parameters of an Accept without any
	child.own, child.peers, child.network.ofRequest = p.cm.param, p.cm.param, p.cm.class
	if in.f.embedded { // as from accept(2)
		child.network.class = listener.network.class
	}
	in.host.requests.Store(p.from, child.self)
	in.deliverEvent(listener, cmid.DriverEvent{
		Kind: states.KindConnectRequest, Child: child, PrivateData: in.padPrivateData(p.cm.private, child.maxPrivateData(ibConnect, udConnect)), Param: in.seenByPeer(p.cm.param),
	})
}

// requestedAgain answers a request that the peer has repeated.
func (id *driverID) requestedAgain() {
	switch id.state {
	case states.ConnectRequested:
		if !id.ps.Datagram() {
			id.cm.send(MsgMRA, nil)
		}
	case states.Accepting, states.Failed, states.Connected:
		if id.cm.sent.kind == MsgREP || id.cm.sent.kind == MsgREJ || id.cm.sent.kind == MsgSIDRREP {
			id.in.f.sendPacket(id.cm.sent)
		}
	default:
	}
}

// gotMoreTime handles the peer's notice (MRA) that it has the request and needs more time.
func (id *driverID) gotMoreTime() {
	if id.state == states.Connecting && id.cm.patience < cmPatience {
		id.cm.patience++
		id.cm.tries = 0
	}
}

// accept implements rdma_accept(3). If it fails, the peer is rejected.
func (id *driverID) accept(c *cmid.Accept) error {
	switch {
	case id.state != states.ConnectRequested && id.stream.reset:
		return unix.ECONNRESET
	case id.state != states.ConnectRequested:
		return unix.EINVAL
	}
	asked, most := id.in.seenByPeer(id.own), id.in.f.depth
	own, err := id.fillParam(c.Param, min(asked.ResponderResources, most), min(asked.InitiatorDepth, most))
	if err != nil || len(c.PrivateData) > id.maxPrivateData(id.Limits().AcceptData, udAnswer) || id.in.f.iwarp && id.qp == nil {
		id.turnDown(nil, int32(cmid.RejectConsumerDefined))
		return unix.EINVAL
	}
	id.own = own
	id.ord = min(own.InitiatorDepth, asked.InitiatorDepth) // the peer's limit
	if id.in.f.embedded {
		id.own.InitiatorDepth = id.ord
	}
	m := &message{ps: id.ps, private: cloneBytes(c.PrivateData), param: id.own}
	m.param.RetryCount, m.param.MinRNRTimer = 0, 0 // a reply does not carry them
	switch {
	case id.ps.Datagram():
		id.state = states.Connected
		id.answerLookup(0, m)
	case id.in.f.iwarp:
		id.state = states.Connected
		id.cm.send(MsgREP, m)
		ev := cmid.DriverEvent{Kind: states.KindEstablished}
		if id.in.f.embedded {
			ev.Param = id.depths()
		}
		id.runLater(func() {
			if id.state == states.Connected {
				id.in.deliverEvent(id, ev)
			}
		})
	default:
		id.state = states.Accepting
		id.noteQPSetup(c.Param)
		id.cm.sendUntilAnswered(MsgREP, m, id.failUnanswered)
	}
	return nil
}

// reject implements rdma_reject(3).
func (id *driverID) reject(c *cmid.Reject) error {
	answerable := id.state == states.ConnectRequested || id.state == states.Responded
	if !answerable || len(c.PrivateData) > id.maxPrivateData(id.Limits().RejectData, udAnswer) {
		return unix.EINVAL
	}
	reason := cmid.RejectConsumerDefined
	if c.VendorECE {
		reason = cmid.RejectVendorOption
	}
	id.turnDown(cloneBytes(c.PrivateData), int32(reason))
	return nil
}

// turnDown rejects the peer.
func (id *driverID) turnDown(private []byte, reason int32) {
	id.state = states.Failed
	if id.ps.Datagram() {
		id.answerLookup(sidrReject, &message{private: private})
		return
	}
	if id.in.f.iwarp {
		reason = connReset // iWARP does not carry the reason
	}
	id.cm.sendAnswer(MsgREJ, &message{private: private, status: reason})
}

// gotReply handles the peer's accept.
func (in *instance) gotReply(id *driverID, p *packet) {
	switch {
	case id == nil:
		in.f.rejectUnaccepted(p, p.to, cmid.RejectInvalidCommID, 0)
	case id.state == states.Connecting:
		id.timer.stop()
		id.cm.far, id.peers = p.from, p.cm.param
		id.ord = min(id.own.InitiatorDepth, p.cm.param.ResponderResources)
		ev := cmid.DriverEvent{
			Kind: states.KindEstablished, PrivateData: in.padPrivateData(p.cm.private, ibAccept), Param: in.seenByPeer(p.cm.param),
		}
		switch {
		case in.f.iwarp:
			id.state = states.Connected
			if in.f.embedded {
				ev.Param = id.depths()
			}
		case id.qp != nil: // librdmacm does RTR, RTS and RTU
			id.state = states.Connected
			id.noteQPSetup(nil)
			id.cm.sendStatus(MsgRTU, 0)
		default:
			id.state = states.Responded
			ev.Kind = states.KindConnectResponse
		}
		in.deliverEvent(id, ev)
	case id.state == states.Connected && !in.f.iwarp:
		id.cm.sendStatus(MsgRTU, 0) // the first one was lost
	}
}

// establish implements rdma_establish(3).
func (id *driverID) establish() error {
	if id.state != states.Responded {
		return unix.EINVAL // the peer has given up
	}
	id.state = states.Connected
	id.cm.sendStatus(MsgRTU, 0)
	return nil
}

// gotReady handles the peer's RTU.
func (id *driverID) gotReady(p *packet) {
	if id.cm.far == p.from {
		id.becomeEstablished()
	}
}

// gotReject handles the peer's reject. A peer that gives up its request sends one too.
func (id *driverID) gotReject(p *packet) {
	switch id.state {
	case states.ConnectRequested:
		id.state = states.Failed // no event: the accept will fail
	case states.Connecting, states.Responded, states.Accepting:
		id.timer.stop()
		id.state = states.Failed
		id.qp.fail()
		id.in.deliverEvent(id, cmid.DriverEvent{
			Kind: states.KindRejected, Status: p.cm.status, PrivateData: id.in.padPrivateData(p.cm.private, ibReject),
		})
	case states.Connected, states.Disconnecting: // the peer has not got the RTU
		if id.cm.far == p.from {
			id.timer.stop()
			id.changeState(states.Timewait, states.KindDisconnected, connReset) // as in cmid/ucm
		}
	default:
	}
}

// The statuses of a SIDR reply.
const (
	sidrUnsupported = 1 // there is no listener
	sidrReject      = 2
)

// answerLookup answers a service lookup.
func (id *driverID) answerLookup(status int32, m *message) {
	m.status = status
	m.param.QKey = globalQKey
	id.cm.sendAnswer(MsgSIDRREP, m)
}

// gotLookupReply handles the answer to a service lookup.
func (id *driverID) gotLookupReply(p *packet) {
	if id.state != states.Connecting {
		return
	}
	id.timer.stop()
	ev := cmid.DriverEvent{PrivateData: id.in.padPrivateData(p.cm.private, udAnswer)}
	switch {
	case p.cm.status != 0:
		id.state = states.Failed
		ev.Kind, ev.Status = states.KindUnreachable, p.cm.status
	default:
		id.state, id.cm.far = states.Connected, p.from
		ev.Kind, ev.Param, ev.AH = states.KindEstablished, p.cm.param, id.wayTo(id.peer.Addr())
	}
	id.in.deliverEvent(id, ev)
}
