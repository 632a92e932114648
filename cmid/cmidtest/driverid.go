package cmidtest

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// driverID is the device's part of an identifier. Its state may be ahead of the state that cmid
// has.
type driverID struct {
	in    *instance // has it now; Detach and Attach change it
	h     cmid.Handle
	state states.State
	addresses
	params
	cm     exchange
	stream stream
	groups groups
	qp     *qp
	timer  alarm
}

// alarm is an identifier's timer. An identifier waits for one thing at a time.
type alarm struct {
	clock
	due time.Time
	fn  func()
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
	id := &driverID{in: in, h: h, addresses: addresses{self: endpoint{in, h}, ps: ps}}
	id.cm.id, id.stream.id, id.groups.id = id, id, id
	in.ids[h] = id
	in.host.countDriverIDs(1)
	return id
}

// enter moves the identifier to a state, unless err has prevented it.
func (id *driverID) enter(s states.State, err error) error {
	if err == nil {
		id.state = s
	}
	return err
}

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

// setTimer runs fn after d. It replaces the fn of the call before.
func (id *driverID) setTimer(d time.Duration, fn func()) {
	t := &id.timer
	t.fn, t.due = fn, id.in.loop.Now().Add(d)
	t.start(id.in.loop, d, func() { t.fn() })
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

// cloneBytes copies b. The copy of an empty slice is nil.
func cloneBytes(b []byte) []byte { return append([]byte(nil), b...) }

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
