package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// A secured connection is made in two steps. In the first, the device connects: request and reply
// have the hellos and the handshake as private data (docs/security-wire.md), and the owners get no
// events. In the second, the parameters of Connect, Accept and Reject travel in the first messages
// of both sides, sealed. So for the state machine the identifier is connected before its owner has
// decided: in this phase, Accept and Reject are not the device's commands.

// handshake is an identifier's state of a secured connection until that is established for its
// owner.
type handshake struct {
	counts      *Handshakes       // it counts there; nil: it has completed or failed
	features    secure.Features   // of this side's hello
	promised    int               // bytes of a receive, by that hello; 0: the queue pair determines them
	established *cmid.Established // the device's
	came        *firstMessage     // the peer's; nil: not received, or handled

	// Set at the side that connects.
	host    string // that Dial names; "": it has named none
	client  *secure.PSKClient
	user    []byte        // the content of its first message
	answers *cmid.Pending // its Connect, after the device has connected

	// Set at the other side.
	in      *incoming         // nil: this side connects
	request []byte            // PSK mode: the part behind the hint, with the id of a key
	reply   []byte            // the private data of the reply
	server  *secure.PSKServer // nil: not computed, or the peer is authenticated
	first   []byte            // the content of the peer's first message
	decides bool              // the owner has the request

	tls *handshakes.TLS // in TLS mode, until it is done; nil otherwise
}

// Messages of an identifier to itself.
type (
	// computed is the reply to a request: it is made off the loop.
	computed struct {
		server *secure.PSKServer
		answer [secure.PSKReplyLen]byte
		err    error
	}
	// firstMessage is the peer's first message. It is posted for a later turn, because the
	// connection is still handling it.
	firstMessage struct {
		typ  wire.Type
		body []byte
	}
)

func (*computed) Lane() mailbox.Lane     { return mailbox.Event }
func (*firstMessage) Lane() mailbox.Lane { return mailbox.Event }

// tlsStep is a step that was computed: a message of an identifier to itself.
type tlsStep struct {
	of *handshakes.TLS
	*handshakes.Outcome
}

func (*tlsStep) Lane() mailbox.Lane { return mailbox.Event }
