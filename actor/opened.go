package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// reportEstablished reports an established connection, and begins its data path. It ends the
// handshake.
func (it *ident) reportEstablished(ev *cmid.Established, answers *cmid.Pending) {
	it.handshake = nil
	if c := it.conn; c != nil && !c.Opened() {
		active := answers != nil && answers.Command.Op() == states.OpConnect
		if it.cfg.isSecured() {
			ev.Identity = it.who
		} else if active && c.Acknowledged() {
			h, user, ok := wire.ParseHello(ev.PrivateData, it.id.Limits().Padded)
			err := wire.CheckVersion(ev.PrivateData)
			if err == nil {
				err = secure.Features(0).Same(secure.Features(h.Features))
			}
			ev.PrivateData = user
			if err != nil {
				it.destroyID(err)
				return
			}
			c.Agree(h, ok, it.id.Limits().MaxMessage)
		} else if active {
			c.Agree(wire.Hello{}, false, it.id.Limits().MaxMessage)
		}
		if active && min(ev.Param.ResponderResources, ev.Param.InitiatorDepth) > 0 {
			c.Offered() // devices differ in which of the two contains the peer's setting
		}
		ev.MaxMessage = c.MaxMessage()
		ev.Foreign = c.Kind() == datapath.ModeForeign
		if ev.Fallback != nil {
			it.l.rt.log.Info("rdma: connected after a fallback", it.logKeys(states.OpConnect, "err", Brief(ev.Fallback))...)
		}
		if ev.Foreign && it.cfg.RefuseForeign {
			// destroyID also answers the Connect
			it.destroyID(fmt.Errorf("connect: %w (%w)", ErrForeignPeer, unix.EPROTO))
			return
		}
	}
	it.answerPending(answers, ev)
	if it.conn != nil && !it.isEnding() {
		it.conn.Establish()
	}
}

// destroyUnrenewed destroys an identifier that is no longer usable, unless Dial continues with
// another address.
func (it *ident) destroyUnrenewed(f Failure) {
	if it.id.Handle() == f.Ident() {
		it.destroyID(f)
	}
}

// countPeer counts the peer if there is room for it within its limits; 0: there is.
func (it *ident) countPeer(r *ConnectRequest, set PeerLimits) wire.Refusal {
	s := it.cfg.Security
	if denied := set.DenyOneSided & s.AllowOneSided; denied != 0 {
		own, cfg := *s, *it.cfg
		own.AllowOneSided &^= denied
		cfg.Security = &own
		it.cfg = &cfg
	}
	who := &limits.Person{Identity: r.Identity}
	if who.Identity == "" {
		who.Address = r.Peer.Source()
	}
	may := limits.May{Connections: set.Connections, ConnectRate: set.ConnectRate}
	may.Memory = func() bool { return it.conn.Belong(*who, set.Memory) }
	over := it.l.rt.identities.Take(*who, may, it.l.rt.cfg.Limits.Connections, it.l.el.Now())
	if over == 0 {
		it.person = who
	}
	return over
}
