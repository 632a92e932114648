package cmidtest

import (
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// What a SIDR reply says.
const (
	sidrUnsupported = 1 // nobody listens
	sidrReject      = 2
)

// answerLookup answers a datagram identifier's request: its queue pair's number, or why not.
func (id *ident) answerLookup(status int32, m *message) {
	if m == nil {
		m = &message{}
	}
	m.status = status
	m.param.QKey = globalQKey
	id.sent = id.packet(MsgSIDRREP, m)
	id.in.f.send(id.sent)
}

// gotLookupReply is the answer.
func (id *ident) gotLookupReply(p *packet) {
	if id == nil || id.state != states.Connecting {
		return
	}
	id.disarm()
	ev := cmid.DriverEvent{PrivateData: id.in.padded(p.cm.private, udAnswer)}
	switch {
	case p.cm.status != 0:
		id.state = states.Failed
		ev.Kind, ev.Status = states.KindUnreachable, p.cm.status
	default:
		id.state, id.far = states.Connected, p.from
		ev.Kind, ev.Param, ev.AH = states.KindEstablished, p.cm.param, id.wayTo(id.peer.Addr())
	}
	id.in.event(id, ev)
}
