package actor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// A secured connection is made in two steps. In the first, the device connects: request and reply
// have the hellos and the handshake as private data (docs/security-wire.md), and the owners get no
// events. In the second, the parameters of Connect, Accept and Reject travel in the first messages
// of both sides, sealed. So for the state machine the identifier is connected before its owner has
// decided: in this phase, Accept and Reject are not the device's commands.

// handshake makes a secured connection, from its request until the owner has the connection. The
// identifier executes the device's commands for it, and asks the owner. This type has what both
// sides do; its side has the rest. A nil handshake is not under way: the methods that identifiers
// call in any state accept a nil receiver.
type handshake struct {
	*commandTable
	of   shaker
	side handshakeSide
	hint uint32 // the request's hint

	stage       handshakeStage    // set by handshake.setStage
	tally       *Handshakes       // where it is counted; nil: it has completed or failed
	features    secure.Features   // of this side's hello
	promised    int               // bytes of a receive in that hello; 0: as the queue pair
	established *cmid.Established // the device's; nil: the device has not connected
	first       firstMessage      // the peer's, from handshakeHeard on
	tls         *handshakes.TLS   // nil: PSK mode
	stranger    *limits.Stranger  // the peer, if it connects; nil: this side connects
}

// handshakeSide is what depends on which side connects: *dialHandshake or *answerHandshake.
type handshakeSide interface {
	datapath.Handshake
	// addresses returns those of the side that connects and of the other.
	addresses() (client, server Addr)
	// deviceConnected continues after the device has connected, with the peer's private data.
	deviceConnected(answers *cmid.Pending, data []byte)
	// handleFirst handles the peer's first message.
	handleFirst(m firstMessage)
	// connectionLost ends the identifier, because the device or the peer has ended the connection.
	connectionLost(err error)
	// newTLS returns the function that begins a TLS handshake, which is called off the loop.
	newTLS(peer secure.TLSPeer) func(context.Context) (*secure.TLS, error)
	// awaitFrames continues after frames were sent. The handshake needs more of the peer's.
	awaitFrames()
	// warnRefused logs that this side refuses the peer because of err.
	warnRefused(err error)
	// startRecords begins the records: the peer is authenticated.
	startRecords(channel *secure.Channel) error
}

// shaker is the actor of the identifier whose handshake it is.
type shaker interface {
	// makeDataPath makes the data path, once.
	makeDataPath(mode datapath.Mode) error
	// countPeer counts the peer, within the limits that are set for it. Not 0: there is no room.
	countPeer(r *ConnectRequest, set PeerLimits) wire.Refusal
	// reportEstablished ends the handshake: the connection is the owner's.
	reportEstablished(ev *cmid.Established, answers *cmid.Pending)
	// destroyUnrenewed destroys the identifier, unless Dial continues with another address.
	destroyUnrenewed(f Failure)
	// BreakOff ends the connection.
	BreakOff(err error)
	// destroyID ends the identifier.
	destroyID(cause error)
}

// handshakeStage is the progress of a handshake. It never goes back. The device of the side that
// connects is connected from handshakeReplied on. The other side's device connects at any time
// between handshakeReplied and handshakeDeciding (handshake.established).
type handshakeStage uint8

const (
	// handshakeBegun has sent the request, or computes the reply to it.
	handshakeBegun handshakeStage = iota
	// handshakeReplied has received the reply, or sent it: the peer has to authenticate itself.
	handshakeReplied
	// handshakeProved has authenticated the peer, and awaits its first message.
	handshakeProved
	// handshakeHeard has the first message, which waits for its turn.
	handshakeHeard
	// handshakeKnown has taken the first message. If that is the peer's request, the owner gets it
	// as soon as the device has connected, too.
	handshakeKnown
	// handshakeDeciding waits for the decision of the owner, which has the peer's request.
	handshakeDeciding
)

func (s handshakeStage) String() string {
	return [...]string{"begun", "replied", "proved", "heard", "known", "deciding"}[s]
}

// setStage advances to a later stage. In builds that look for misuse a step back panics.
func (h *handshake) setStage(to handshakeStage) {
	if overwrite.On && to <= h.stage {
		panic("rdma: a handshake that is " + h.stage.String() + " cannot become " + to.String())
	}
	h.stage = to
}

// isUnreported reports whether the owner was not notified yet of the connection that the device
// has.
func (h *handshake) isUnreported() bool { return h != nil && h.stage != handshakeDeciding }

// asDeciding returns the handshake of an authenticated peer that waits for the owner's decision;
// nil: there is none.
func (h *handshake) asDeciding() *answerHandshake {
	if h == nil || h.stage != handshakeDeciding {
		return nil
	}
	return h.side.(*answerHandshake)
}

// addTo adds to the connection's terms the values that the handshake determines, and returns its
// part for the data path; nil: there is no handshake.
func (h *handshake) addTo(t *datapath.Terms) datapath.Handshake {
	if h == nil {
		return nil
	}
	t.Features, t.Promised = uint8(h.features), max(t.Promised, h.promised)
	return h.side
}

// newBinding returns the values that must be the same for both sides.
func (h *handshake) newBinding() secure.Binding {
	b := secure.Binding{Device: secure.DeviceInfiniBand, Hint: h.hint}
	if h.id.Flavor()&states.IWARP != 0 {
		b.Device = secure.DeviceIWARP
	}
	if h.cfg.Security.NoAddresses {
		return b
	}
	client, server := h.side.addresses()
	b.Client, b.Server = client.Addr(), netip.AddrPortFrom(server.Addr(), server.Port())
	return b
}

// First implements datapath.Handshake.
func (h *handshake) First(t wire.Type, body []byte) {
	h.setStage(handshakeHeard)
	h.first = firstMessage{t, bytes.Clone(body)}
	h.box.PostUserMessage(&heard{})
}

// countBegun counts the handshake.
func (h *handshake) countBegun(tally *Handshakes, step string) {
	h.tally = tally
	tally.Begun++
	h.recordFlight(FlightHandshake, step, 0)
}

// notePassed records a step of the handshake.
func (h *handshake) notePassed(step string) {
	if h.tally != nil {
		h.recordFlight(FlightHandshake, step, 0)
	}
}

// countCompleted counts the handshake as successful.
func (h *handshake) countCompleted(step string) {
	h.notePassed(step)
	if tally := h.tally; tally != nil {
		h.tally = nil
		tally.Completed++
	}
}

// countFailed counts the handshake as failed. False: it is not under way, or has ended before.
func (h *handshake) countFailed(why HandshakeFailure, err error) bool {
	if h == nil || h.tally == nil {
		return false
	}
	h.tally.Failed[why]++
	h.tally = nil
	h.recordFlight(FlightHandshake, handshakeNotes[why], errnoOf(err))
	return true
}

// countFailedBy calls countFailed with the reason in err.
func (h *handshake) countFailedBy(err error) bool {
	return h != nil && h.tally != nil && h.countFailed(failureOf(err), err)
}

// failUnfinished aborts the handshake, because of cause; nil: the identifier ends in order.
func (h *handshake) failUnfinished(cause error) {
	if h == nil {
		return
	}
	h.countFailedBy(cause)
	if a, ok := h.side.(*answerHandshake); ok && a.server != nil {
		a.server.Forget()
	}
	if h.tls == nil {
		return
	}
	if cause == nil {
		cause = errEnded
	}
	if t, rt := h.tls, h.l.rt; t.End(cause) {
		rt.running.Add(1)
		rt.Scheduler().Go(func() {
			defer rt.running.Done()
			t.Close()
		})
	}
}

// uncountStranger returns the place that loop.countStranger has taken.
func (h *handshake) uncountStranger() {
	if h != nil && h.stranger != nil {
		h.l.rt.strangers.Leave(h.stranger)
	}
}

// errEnded is the error of a handshake that is given up because its identifier ends in order.
var errEnded = errors.New("the identifier was closed")

// errTooEarly is the error of a connection whose peer does not wait for the handshake.
var errTooEarly = &ProtocolError{What: "a message before the handshake"}

// Messages of a handshake to its identifier.
type (
	// computed is the reply to a request: it is made off the loop.
	computed struct {
		of     *answerHandshake
		server *secure.PSKServer
		answer [secure.PSKReplyLen]byte
		err    error
	}
	// tlsStep is a step that was computed.
	tlsStep struct {
		of *handshakes.TLS
		*handshakes.Outcome
	}
	// heard reports the peer's first message. It is posted for a later turn, because the connection
	// is still handling the message.
	heard struct{}
	// evicted asks the handshake to give way to another one.
	evicted struct{ of *answerHandshake }
)

func (*computed) Lane() mailbox.Lane { return mailbox.Event }
func (*tlsStep) Lane() mailbox.Lane  { return mailbox.Event }
func (*heard) Lane() mailbox.Lane    { return mailbox.Event }
func (*evicted) Lane() mailbox.Lane  { return mailbox.Event }

// firstMessage is the peer's first message.
type firstMessage struct {
	typ  wire.Type
	body []byte
}

// handleConnected handles the device's report that it has connected. The peer is not authenticated
// yet.
func (h *handshake) handleConnected(ev *cmid.Established, answers *cmid.Pending) {
	data := ev.PrivateData
	h.established, ev.PrivateData = ev, nil
	h.side.deviceConnected(answers, data)
}

// handleHeard handles the peer's first message, once, if it has arrived.
func (h *handshake) handleHeard() {
	if h == nil || h.stage != handshakeHeard || h.isEnding() {
		return
	}
	h.setStage(handshakeKnown)
	h.side.handleFirst(h.first)
}

// destroyLost ends an identifier whose connection has ended, because of cause, before its owner was
// notified of it. If the device or the peer has ended it, that is no evidence of a wrong key: the
// connecting side may try again.
func (h *handshake) destroyLost(cause error) {
	h.executeStep(&cmid.Disconnect{}, nil, func(Event) {})
	if h.conn.BrokenBy() != nil {
		h.of.destroyID(&HandshakeError{What: "the connection has ended before it was established", Err: cause})
		return
	}
	err := fmt.Errorf("the connection has ended before it was established: %w", unix.ECONNRESET)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	h.side.connectionLost(err)
}
