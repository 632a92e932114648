package cmidtest

import (
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// driverID is the device's part of an identifier. Its state may be ahead of the state that cmid
// has.
type driverID struct {
	in          *instance // has it now; Detach and Attach change it
	home        *instance // has made it; peers send to this one
	h           cmid.Handle
	ps          cmid.PortSpace
	state       states.State
	local, peer cmid.Addr
	dev         *device
	port        *binding // nil while not bound
	strayed     bool     // was bound to an interface without a device: the kernel never forgets
	reuse       bool
	afOnly      bool
	afOnlySet   bool
	qp          *qp
	groups      map[netip.Addr]*cmid.JoinMulticast // joined
	network     transit

	far      endpoint // the other end
	key      endpoint // the end whose request made this identifier
	own      cmid.ConnParam
	peers    cmid.ConnParam // the peer's
	ord      uint8          // how many Reads may be outstanding: as many as the peer serves
	reset    bool           // a request whose peer gave up (iWARP)
	opening  *cmid.Connect  // its stream is not open yet (iWARP)
	sent     packet         // repeated until it is answered
	tries    int
	patience int // how often the peer has asked for more time
	timer    clock
	due      time.Time // of timer
	onTimer  func()

	lost     *message // iWARP: how the connection was lost, while messages wait
	stall    clock    // iWARP: TCP's timer for a link that is cut
	stalling bool     // it runs
}

// clock is a timer that is made when it is first needed.
type clock struct{ t *eventloop.Timer }

// start runs fn after d. Every call must pass the same fn.
func (c *clock) start(l *eventloop.Loop, d time.Duration, fn func()) {
	if c.t == nil {
		c.t = l.NewTimer(fn)
	}
	c.t.Reset(d)
}

// stop reports whether the clock was running.
func (c *clock) stop() bool { return c.t != nil && c.t.Stop() }

func (in *instance) newDriverID(h cmid.Handle, ps cmid.PortSpace) *driverID {
	id := &driverID{in: in, home: in, h: h, ps: ps}
	in.ids[h] = id
	in.host.countDriverIDs(1)
	return id
}

func (id *driverID) ownEndpoint() endpoint { return endpoint{id.home, id.h} }

func (id *driverID) isAlive() bool { return id.in.ids[id.h] == id }

// runLater runs fn after the messages that have arrived, unless the identifier is destroyed by
// then.
func (id *driverID) runLater(fn func()) {
	id.in.queuePacket(packet{kind: msgLocal, to: endpoint{id.in, id.h}, fn: func() {
		if id.isAlive() {
			fn()
		}
	}})
}

// runAfter runs fn after d, in a later turn even when d is 0.
func (id *driverID) runAfter(d time.Duration, fn func()) {
	if d > 0 {
		id.setTimer(d, fn)
		return
	}
	id.runLater(fn)
}

// setTimer runs fn after d. It replaces the fn of the call before, because an identifier waits for
// one thing at a time.
func (id *driverID) setTimer(d time.Duration, fn func()) {
	id.onTimer = fn
	id.due = id.in.loop.Now().Add(d)
	id.timer.start(id.in.loop, d, func() { id.onTimer() })
}

func (id *driverID) newPacket(kind Message, m *message) packet {
	return packet{kind: kind, by: id, from: id.ownEndpoint(), to: id.far, src: id.local.Addr(), dst: id.peer.Addr(), cm: m}
}

// sendMessage sends a message to the other end.
func (id *driverID) sendMessage(kind Message, m *message) {
	id.in.f.sendPacket(id.newPacket(kind, m))
}

// sendStatus sends a message that has only a kind and a status.
func (id *driverID) sendStatus(kind Message, status int32) {
	id.sendMessage(kind, &message{status: status})
}

// sendAnswer sends a message. It is sent again whenever the peer repeats its own.
func (id *driverID) sendAnswer(kind Message, m *message) {
	id.sent = id.newPacket(kind, m)
	id.in.f.sendPacket(id.sent)
}

// sendUntilAnswered sends a message and repeats it. giveUp runs when no answer comes.
func (id *driverID) sendUntilAnswered(kind Message, m *message, giveUp func()) {
	id.sendAnswer(kind, m)
	id.repeatSend(func() { id.in.f.sendPacket(id.sent) }, giveUp)
}

// repeatSend calls send again and again, and at last giveUp. An answer stops the timer, and so ends
// it.
func (id *driverID) repeatSend(send, giveUp func()) {
	id.tries = 0
	var again func()
	again = func() {
		if id.tries++; id.tries > cmRetries {
			giveUp()
			return
		}
		id.setTimer(cmTimeout, again)
		send()
	}
	id.setTimer(cmTimeout, again)
}

// Handle returns the identifier's handle.
func (id *driverID) Handle() cmid.Handle { return id.h }

// Flavor returns the Fabric's flavor.
func (id *driverID) Flavor() states.Flavor {
	if id.in.f.iwarp {
		return states.IWARP
	}
	return 0
}

// Limits returns the transport's limits for connected identifiers.
func (id *driverID) Limits() cmid.Limits {
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

// Bytes of private data that a command may carry. On InfiniBand its event is padded to that length.
const (
	ibConnect, ibAccept, ibReject = 56, 196, 148
	udConnect, udAnswer           = 180, 136
	iwarpData                     = 251
	embeddedData                  = 248
)

// padPrivateData returns private data as it arrives.
func (in *instance) padPrivateData(b []byte, n int) []byte {
	if in.f.iwarp {
		return b
	}
	return append(append(make([]byte, 0, n), b...), make([]byte, max(n-len(b), 0))...)
}

// seenByPeer returns p as the peer sees it. The Reads that one side issues are those that the other
// serves. iWARP carries nothing else.
func (in *instance) seenByPeer(p cmid.ConnParam) cmid.ConnParam {
	p.ResponderResources, p.InitiatorDepth = p.InitiatorDepth, p.ResponderResources
	if in.f.iwarp {
		return cmid.ConnParam{ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth}
	}
	return p
}

// agreedDepths returns the depths that the embedded device reports for a connection: the Reads that
// this side serves, and those that it may request.
func (id *driverID) agreedDepths(ask uint8) cmid.ConnParam {
	if !id.in.f.embedded {
		return cmid.ConnParam{}
	}
	return cmid.ConnParam{ResponderResources: id.own.ResponderResources, InitiatorDepth: ask}
}

// cloneBytes copies b. The copy of an empty slice is nil.
func cloneBytes(b []byte) []byte { return append([]byte(nil), b...) }

// clearStall stops TCP's timer.
func (id *driverID) clearStall() {
	id.stalling = false
	id.stall.stop()
}

const (
	deviceDepth   = 16 // reads a queue pair can hold, each way
	embeddedDepth = 128
	deviceMax     = 255 // asks for as many as the device has
	retries       = 6
	retriesNoEnd  = 7 // repeat a message that found no receive forever
)

// Timers. Their lengths may differ from a kernel's. Their effects are the same.
const (
	cmTimeout    = 4300 * time.Millisecond // an unanswered message is repeated
	cmRetries    = 15                      // so many times
	cmPatience   = 240                     // so often a peer may ask for more time
	timewait     = 2 * time.Second
	tcpTimeout   = 127 * time.Second // iWARP: the SYN is not answered
	replyTimeout = 10 * time.Second  // iWARP: the MPA request is not answered
	synRepeat    = time.Second       // the embedded device: the listener's backlog is full
)
