package cmidtest

import (
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// ident is an identifier as the device knows it. Its state may be ahead of the one that the layer
// above has.
type ident struct {
	in          *instance // that has it; Detach and Attach change it
	home        *instance // that made it, where peers send to
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

	far      endpoint // the other end
	key      endpoint // whose request made this identifier
	own      cmid.ConnParam
	peers    cmid.ConnParam // the peer's
	ord      uint8          // how many Reads may be outstanding: as many as the peer serves
	reset    bool           // a request whose peer gave up (iWARP)
	opening  *cmid.Connect  // whose stream is not open yet (iWARP)
	sent     packet         // what is repeated until it is answered
	tries    int
	patience int // how often the peer has asked for more time
	timer    clock
	due      time.Time // of timer
	onTimer  func()

	stall    clock // iWARP: TCP's timer for a link that is cut
	stalling bool  // it runs
}

// clock is a timer that is made when it is first needed.
type clock struct{ t *eventloop.Timer }

// start has fn run after d. Every call passes the same fn.
func (c *clock) start(l *eventloop.Loop, d time.Duration, fn func()) {
	if c.t == nil {
		c.t = l.NewTimer(fn)
	}
	c.t.Reset(d)
}

// stop reports whether the clock was running.
func (c *clock) stop() bool { return c.t != nil && c.t.Stop() }

func (in *instance) newIdent(h cmid.Handle, ps cmid.PortSpace) *ident {
	id := &ident{in: in, home: in, h: h, ps: ps}
	in.ids[h] = id
	in.host.count(1)
	return id
}

func (id *ident) self() endpoint { return endpoint{id.home, id.h} }

func (id *ident) alive() bool { return id.in.ids[id.h] == id }

// later runs fn after what has arrived already, unless the identifier is destroyed by then.
func (id *ident) later(fn func()) {
	id.in.put(packet{kind: msgLocal, to: endpoint{id.in, id.h}, fn: func() {
		if id.alive() {
			fn()
		}
	}})
}

// after runs fn after d, in a later turn even when d is 0.
func (id *ident) after(d time.Duration, fn func()) {
	if d > 0 {
		id.arm(d, fn)
		return
	}
	id.later(fn)
}

// arm runs fn after d. An identifier waits for one thing at a time.
func (id *ident) arm(d time.Duration, fn func()) {
	id.onTimer = fn
	id.due = id.in.loop.Now().Add(d)
	id.timer.start(id.in.loop, d, func() { id.onTimer() })
}

func (id *ident) packet(kind Message, m *message) packet {
	return packet{kind: kind, from: id.self(), to: id.far, src: id.local.Addr(), dst: id.peer.Addr(), cm: m}
}

// send gives the network a message for the other end.
func (id *ident) send(kind Message, m *message) {
	id.in.f.send(id.packet(kind, m))
}

// say sends a message that has no more than a kind and a status.
func (id *ident) say(kind Message, status int32) { id.send(kind, &message{status: status}) }

// answer sends a message that is sent again when the peer repeats its own.
func (id *ident) answer(kind Message, m *message) {
	id.sent = id.packet(kind, m)
	id.in.f.send(id.sent)
}

// sendUntilAnswered sends a message and repeats it. giveUp runs when there is no answer.
func (id *ident) sendUntilAnswered(kind Message, m *message, giveUp func()) {
	id.answer(kind, m)
	id.repeat(func() { id.in.f.send(id.sent) }, giveUp)
}

// repeat sends again until there is an answer, which stops the timer.
func (id *ident) repeat(send, giveUp func()) {
	id.tries = 0
	var again func()
	again = func() {
		if id.tries++; id.tries > cmRetries {
			giveUp()
			return
		}
		id.arm(cmTimeout, again)
		send()
	}
	id.arm(cmTimeout, again)
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

// Private data: what a command may carry, and on InfiniBand what its event is padded to.
const (
	ibConnect, ibAccept, ibReject = 56, 196, 148
	udConnect, udAnswer           = 180, 136
	iwarpData                     = 251
	embeddedData                  = 248
)

// padded is private data as it arrives.
func (in *instance) padded(b []byte, n int) []byte {
	if in.f.iwarp {
		return b
	}
	return append(append(make([]byte, 0, n), b...), make([]byte, max(n-len(b), 0))...)
}

// seen is p as the peer sees it: the reads of one side are the answers of the other. iWARP carries
// nothing else.
func (in *instance) seen(p cmid.ConnParam) cmid.ConnParam {
	p.ResponderResources, p.InitiatorDepth = p.InitiatorDepth, p.ResponderResources
	if in.f.iwarp {
		return cmid.ConnParam{ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth}
	}
	return p
}

// agreed is the depths of a connection that the embedded device reports to either side: what it
// serves, and what it may ask.
func (id *ident) agreed(ask uint8) cmid.ConnParam {
	if !id.in.f.embedded {
		return cmid.ConnParam{}
	}
	return cmid.ConnParam{ResponderResources: id.own.ResponderResources, InitiatorDepth: ask}
}

// clone copies b. Nothing is nil.
func clone(b []byte) []byte { return append([]byte(nil), b...) }

// unstall stops TCP's timer.
func (id *ident) unstall() {
	id.stalling = false
	id.stall.stop()
}

const (
	deviceDepth   = 16 // reads a queue pair can hold, each way
	embeddedDepth = 128
	deviceMax     = 255 // asks for as many as the device has
	retries       = 6
	retriesNoEnd  = 7 // of a message that found no receive: without end
)

// Timers. Their lengths may differ from a kernel's. What follows when they end is the same.
const (
	cmTimeout    = 4300 * time.Millisecond // an unanswered message is repeated
	cmRetries    = 15                      // so many times
	cmPatience   = 240                     // so often a peer may ask for more time
	timewait     = 2 * time.Second
	tcpTimeout   = 127 * time.Second // iWARP: nobody answers the SYN
	replyTimeout = 10 * time.Second  // iWARP: nobody answers the MPA request
	synRepeat    = time.Second       // the embedded device: the listener's backlog is full
)
