package actor

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
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
// identifier executes the device's commands for it, and asks the owner. A nil handshake is not
// under way: the methods that identifiers call in any state accept a nil receiver.
type handshake struct {
	*commandTable
	of      shaker
	tenancy *tenancy // joins its Domain when the owner accepts
	hint    uint32   // the request's hint

	stage       handshakeStage    // set by handshake.set
	tally       *Handshakes       // where it is counted; nil: it has completed or failed
	features    secure.Features   // of this side's hello
	promised    int               // bytes of a receive in that hello; 0: as the queue pair
	established *cmid.Established // the device's; nil: the device has not connected
	first       firstMessage      // the peer's, from handshakeHeard on
	tls         *handshakes.TLS   // nil: PSK mode

	// Set at the side that connects.
	host    string // the host that Dial names; "": none
	client  *secure.PSKClient
	user    []byte        // the content of its first message
	answers *cmid.Pending // its Connect, after the device has connected

	// Set at the other side.
	in      *incoming         // nil: this side connects
	request []byte            // PSK mode: the part behind the hint, with the id of a key
	reply   []byte            // the private data of the reply
	server  *secure.PSKServer // PSK mode; nil: not computed
}

// shaker is the actor of the identifier whose handshake it is.
type shaker interface {
	// queuePair makes the data path, once.
	queuePair(mode datapath.Mode) error
	// limit counts the peer, within the limits that are set for it. Not 0: there is no room.
	limit(r *ConnectRequest, set PeerLimits) wire.Refusal
	// opened ends the handshake: the connection is the owner's.
	opened(ev *cmid.Established, answers *cmid.Pending)
	// failed destroys the identifier, unless Dial continues with another address.
	failed(f Failure)
	// BreakOff ends the connection.
	BreakOff(err error)
	// destroy ends the identifier.
	destroy(cause error)
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

// set advances to a later stage. In builds that look for misuse a step back panics.
func (h *handshake) set(to handshakeStage) {
	if overwrite.On && to <= h.stage {
		panic("rdma: a handshake that is " + h.stage.String() + " cannot become " + to.String())
	}
	h.stage = to
}

// unheard reports whether the owner was not notified yet of the connection that the device has.
func (h *handshake) unheard() bool { return h != nil && h.stage != handshakeDeciding }

// deciding reports whether an authenticated peer waits for the owner's decision.
func (h *handshake) deciding() bool { return h != nil && h.stage == handshakeDeciding }

// addTo adds to the connection's terms the values that the handshake determines.
func (h *handshake) addTo(t *datapath.Terms) {
	if h != nil {
		t.Features, t.Promised, t.Handshake = uint8(h.features), max(t.Promised, h.promised), h
	}
}

// binding returns the values that must be the same for both sides.
func (h *handshake) binding() secure.Binding {
	b := secure.Binding{Device: secure.DeviceInfiniBand, Hint: h.hint}
	if h.id.Flavor()&states.IWARP != 0 {
		b.Device = secure.DeviceIWARP
	}
	if h.cfg.Security.NoAddresses {
		return b
	}
	var client, server Addr
	if h.in != nil {
		client, server = h.in.r.Peer, h.in.r.Local
	} else {
		in := h.id.Info()
		client, server = in.Local, in.Peer
	}
	b.Client, b.Server = client.Addr(), netip.AddrPortFrom(server.Addr(), server.Port())
	return b
}

// First implements datapath.Handshake.
func (h *handshake) First(t wire.Type, body []byte) {
	h.set(handshakeHeard)
	h.first = firstMessage{t, bytes.Clone(body)}
	h.box.PostUserMessage(&heard{})
}

// takeFirst reports whether the peer's first message has arrived and was not taken.
func (h *handshake) takeFirst() bool {
	if h == nil || h.stage != handshakeHeard {
		return false
	}
	h.set(handshakeKnown)
	return true
}

// begin counts the handshake.
func (h *handshake) begin(tally *Handshakes, step string) {
	h.tally = tally
	tally.Begun++
	h.noteStep(step, nil)
}

// passed records a step of the handshake.
func (h *handshake) passed(step string) {
	if h.tally != nil {
		h.noteStep(step, nil)
	}
}

// completed counts the handshake as successful.
func (h *handshake) completed(step string) {
	h.passed(step)
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
	h.noteStep(handshakeNotes[why], err)
	return true
}

// countFailedBy is countFailed for the reason that is in err.
func (h *handshake) countFailedBy(err error) bool {
	return h != nil && h.tally != nil && h.countFailed(failureOf(err), err)
}

func (h *handshake) noteStep(what string, err error) {
	if f := h.l.flight; f != nil {
		f.Note(h.l.el.Now(), uint64(h.id.Handle()), FlightHandshake, what, errnoOf(err))
	}
}

// end aborts the handshake, because of cause; nil: the identifier ends in order.
func (h *handshake) end(cause error) {
	if h == nil {
		return
	}
	h.countFailedBy(cause)
	if h.server != nil {
		h.server.Forget()
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

// uncrowd returns the place that loop.crowd has taken.
func (h *handshake) uncrowd() {
	if h != nil && h.in != nil {
		h.l.rt.strangers.Leave(h.in.stranger)
	}
}

// errEnded is the error of a handshake that is given up because its identifier ends in order.
var errEnded = errors.New("the identifier was closed")

// Messages of a handshake to its identifier.
type (
	// computed is the reply to a request: it is made off the loop.
	computed struct {
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
	evicted struct{}
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

// connected handles the device's report that it has connected. The peer is not authenticated yet.
func (h *handshake) connected(ev *cmid.Established, answers *cmid.Pending) {
	if h.in == nil {
		h.answers = answers
	} else {
		answers.Answer(ev)
	}
	data := ev.PrivateData
	h.established, ev.PrivateData = ev, nil
	switch {
	case h.in == nil:
		if err := h.takeReply(data); err != nil {
			h.of.destroy(err) // this also answers the Connect
		}
	case h.tls != nil:
		h.stepTLS()
	default:
		h.introduce()
	}
}

// heardFirst handles the peer's first message.
func (h *handshake) heardFirst() {
	if h == nil || h.ending() || !h.takeFirst() {
		return
	}
	switch m := h.first; m.typ {
	case wire.TypeAccept:
		h.completed("accepted by the peer")
		h.established.PrivateData = m.body
		h.of.opened(h.established, h.answers)
	case wire.TypeReject:
		h.completed("rejected by the peer")
		h.rejectedBy(m.body, fmt.Errorf("rejected: by the application: %w", unix.ECONNREFUSED))
	case wire.TypeRefusal:
		h.completed("refused by the peer")
		h.rejectedBy(nil, sealedRefusalError(m.body))
	case wire.TypeRequest:
		h.introduce()
	}
}

// lost ends an identifier whose connection has ended, because of cause, before its owner was
// notified of it.
func (h *handshake) lost(cause error) {
	h.doInner(&cmid.Disconnect{}, nil, func(Event) {})
	if h.conn.BrokenBy() != nil {
		h.of.destroy(&HandshakeError{What: "the connection has ended before it was established", Err: cause})
	} else {
		h.reset(cause)
	}
}

// reset ends an identifier whose connection the device or the peer has ended before it was
// established. This is no evidence of a wrong key: the connecting side may try again.
func (h *handshake) reset(cause error) {
	err := fmt.Errorf("the connection has ended before it was established: %w", unix.ECONNRESET)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	p := h.answers
	if p == nil { // no command waits: the other side connects
		h.of.destroy(err)
		return
	}
	ev := &cmid.ConnectError{FailureBase: h.failure(p.Command, opName(p.Command), err)}
	h.answer(p, ev)
	h.of.failed(ev)
}
