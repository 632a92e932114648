package cmidtest

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// ident is an identifier as the device knows it. state is the device's own view, which the one
// above may lag behind.
type ident struct {
	in          *instance // whose it is, see Migrate
	home        *instance // that made it, where peers send to
	h           cmid.Handle
	ps          cmid.PortSpace
	state       states.State
	local, peer cmid.Addr
	dev         *device
	port        *binding // nil while not bound
	poisoned    bool     // bound once to an interface without a device: the kernel never forgets
	reuse       bool
	afOnly      bool
	afOnlySet   bool
	qp          *qp
	groups      map[netip.Addr]*cmid.JoinMulticast // joined

	far      endpoint // the other end
	key      endpoint // whose request made this identifier
	own      cmid.ConnParam
	peers    cmid.ConnParam // what the peer has said
	ord      uint8          // Reads that may be outstanding: no more than the peer serves
	reset    bool           // a request whose peer gave up (iWARP)
	opening  *cmid.Connect  // whose stream is not open yet (iWARP)
	sent     packet         // what is repeated until it is answered
	tries    int
	patience int // how often the peer has asked for more time
	timer    *eventloop.Timer
	due      time.Time // of timer
	onTimer  func()

	stall    *eventloop.Timer // iWARP: TCP's patience with a link that is cut; nil until the first
	stalling bool             // it runs
}

func (in *instance) newIdent(h cmid.Handle, ps cmid.PortSpace) *ident {
	id := &ident{in: in, home: in, h: h, ps: ps}
	in.ids[h] = id
	in.host.count(1)
	return id
}

func (id *ident) self() endpoint { return endpoint{id.home, id.h} }

func (id *ident) alive() bool { return id.in.ids[id.h] == id }

// later runs fn after what has arrived already, unless id is destroyed by then.
func (id *ident) later(fn func()) {
	id.in.put(packet{kind: msgLocal, to: endpoint{id.in, id.h}, fn: func() {
		if id.alive() {
			fn()
		}
	}})
}

// arm runs fn after d; an identifier waits for one thing at a time.
func (id *ident) arm(d time.Duration, fn func()) {
	id.onTimer = fn
	if id.timer == nil {
		id.timer = id.in.loop.NewTimer(func() { id.onTimer() })
	}
	id.due = id.in.loop.Now().Add(d)
	id.timer.Reset(d)
}

func (id *ident) disarm() {
	if id.timer != nil {
		id.timer.Stop()
	}
}

// tell tells an event that has nothing but a kind and a status.
func (id *ident) tell(kind states.Kind, status int32) {
	id.in.event(id, cmid.DriverEvent{Kind: kind, Status: status})
}

// Handle is the identifier's.
func (id *ident) Handle() cmid.Handle { return id.h }

// Flavor is the Fabric's.
func (id *ident) Flavor() states.Flavor {
	if id.in.f.iwarp {
		return states.IWARP
	}
	return 0
}

// Limits are the transport's for connected identifiers.
func (id *ident) Limits() cmid.Limits {
	l := cmid.Limits{
		ConnectData: ibConnect, AcceptData: ibAccept, RejectData: ibReject, Padded: true,
		MaxBacklog: maxBacklog, MaxMessage: maxMessage,
	}
	if id.in.f.iwarp {
		l.ConnectData, l.AcceptData, l.RejectData, l.Padded = iwarpData, iwarpData, iwarpData, false
	}
	if id.in.f.embedded {
		l.ConnectData, l.AcceptData, l.RejectData = embeddedData, embeddedData, embeddedData
	}
	return l
}

// Info gives addresses and device.
func (id *ident) Info() cmid.Info {
	info := cmid.Info{Local: id.local, Peer: id.peer}
	if id.dev != nil {
		info.Device, info.Port = id.dev.name, 1
	}
	return info
}

// Device is the device the identifier is attached to.
func (id *ident) Device() verbs.Device {
	switch {
	case id.dev == nil:
		return nil
	case id.qp != nil:
		return id.qp.view
	}
	return id.in.view(id.dev)
}

// CreateQP ties a queue pair to the identifier.
func (id *ident) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	switch {
	case id.dev == nil || id.qp != nil:
		return nil, unix.EINVAL
	case id.ps.Datagram() && id.in.f.iwarp:
		return nil, verbs.ErrNotSupported
	}
	if err := id.in.f.exhausted(); err != nil {
		return nil, err
	}
	return id.in.newQP(id, attr)
}

// Do executes what the state machine above has allowed.
func (id *ident) Do(cmd cmid.Command) error {
	if _, ok := cmd.(*cmid.DestroyID); ok {
		id.destroy()
		return nil
	}
	if id.state == states.Removed {
		return unix.ENXIO
	}
	switch c := cmd.(type) {
	case *cmid.BindAddr:
		return id.bind(c.Addr)
	case *cmid.ResolveAddr:
		return id.resolveAddr(c)
	case *cmid.ResolveRoute:
		return id.resolveRoute(c)
	case *cmid.Listen:
		return id.startListening(c)
	case *cmid.Connect:
		return id.connect(c)
	case *cmid.Accept:
		return id.accept(c)
	case *cmid.Reject:
		return id.reject(c)
	case *cmid.Establish:
		return id.establish()
	case *cmid.Disconnect:
		return id.disconnect()
	case *cmid.SetOption:
		return id.setOption(c)
	case *cmid.Notify:
		return id.notify(c)
	case *cmid.JoinMulticast:
		return id.join(c)
	case *cmid.LeaveMulticast:
		return id.leave(c.Addr)
	case *cmid.SetIBPath:
		if !id.in.f.embedded {
			return id.setIBPath(c.Paths)
		}
	case *cmid.WriteCMEvent:
		if !id.in.f.embedded {
			id.later(func() { id.in.event(id, cmid.DriverEvent{Kind: states.KindUser, Arg: c.Arg}) })
			return nil
		}
	case *cmid.ResolveIBService: // only native InfiniBand has a subnet administrator
	default:
		return unix.EINVAL
	}
	return cmid.ErrNotSupported
}

func (id *ident) setOption(c *cmid.SetOption) error {
	limit := map[cmid.Option]int{cmid.OptionTOS: 255, cmid.OptionReuseAddr: 1, cmid.OptionAFOnly: 1, cmid.OptionAckTimeout: 31}
	if most, ok := limit[c.Option]; !ok {
		return unix.ENOSYS
	} else if c.Value < 0 || c.Value > most {
		return unix.EINVAL
	}
	switch c.Option {
	case cmid.OptionReuseAddr:
		id.reuse = c.Value != 0
	case cmid.OptionAFOnly:
		id.afOnly, id.afOnlySet = c.Value != 0, true
	case cmid.OptionTOS, cmid.OptionAckTimeout:
		// nothing here has a class of traffic or acknowledges late
	}
	if id.port != nil {
		id.in.f.mu.Lock()
		id.port.reuse, id.port.afOnly = id.reuse, id.afOnlyFor(id.port.ip)
		id.in.f.mu.Unlock()
	}
	return nil
}

// notify is rdma_notify(3): on InfiniBand a receive before the RTU shows that the connection is
// established.
func (id *ident) notify(c *cmid.Notify) error {
	if !id.in.f.iwarp && !c.PathMigrated {
		id.later(id.becomeEstablished)
	}
	return nil
}

// destroy ends the identifier as rdma_destroy_id(3) does, with what that tells the peer.
func (id *ident) destroy() {
	if id.alive() {
		id.vanish()
		delete(id.in.ids, id.h)
	}
}

// vanish is destroy of an identifier that its instance has let go of.
func (id *ident) vanish() {
	id.abandon()
	id.unbind()
	id.disarm()
	id.unstall()
	if id.qp != nil {
		id.qp.release()
	}
	if id.key.in != nil {
		id.in.host.answered(id.key, id)
	}
	id.in.host.count(-1)
	id.state = states.Destroying
}

// abandon tells the peer that nobody is here any more.
func (id *ident) abandon() {
	switch {
	case id.ps.Datagram():
		if id.state == states.ConnectRequested {
			id.answerLookup(sidrReject, nil)
		}
		return
	case id.in.f.iwarp:
		switch id.state {
		case states.Connected: // it says FIN
			id.send(MsgDREQ, &message{})
		case states.Connecting, states.ConnectRequested:
			id.send(MsgDREQ, &message{status: -int32(unix.ECONNRESET)})
		default:
		}
		return
	}
	switch id.state {
	case states.Connecting:
		id.send(MsgREJ, &message{status: int32(cmid.RejectTimeout)})
	case states.ConnectRequested, states.Responded, states.Accepting:
		id.send(MsgREJ, &message{status: int32(cmid.RejectConsumerDefined)})
	case states.Connected:
		id.send(MsgDREQ, &message{})
	case states.PeerDisconnected:
		id.send(MsgDREP, &message{})
	default:
	}
}

// removeDevice takes the device away. A request nobody has answered yet is not told: its Accept
// will fail with ENXIO.
func (id *ident) removeDevice() {
	silent := id.state == states.ConnectRequested
	id.abandon()
	id.unbind()
	id.disarm()
	id.unstall()
	if id.qp != nil {
		id.qp.fail()
	}
	id.opening = nil
	id.state = states.Removed
	if !silent {
		id.tell(states.KindDeviceRemoval, 0)
	}
}
