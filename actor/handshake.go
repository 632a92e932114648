package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// A secured connection is made in two steps. In the first, the device connects: request and reply
// have the hellos and the handshake as private data (docs/security-wire.md), and the owners hear of
// nothing. In the second, what Connect, Accept and Reject say travels in the first messages of both
// sides, sealed. So for the state machine the identifier is connected before its owner has decided:
// in this phase, Accept and Reject are not the device's commands.

// handshake is what an identifier has of a secured connection until it is established for its
// owner.
type handshake struct {
	established *cmid.Established // the device's
	came        *firstMessage     // the peer's; nil: it has not come, or was handled

	// Of the side that connects.
	client  *secure.PSKClient
	user    []byte        // what its request says
	answers *cmid.Pending // its Connect, once the device has connected

	// Of the other side.
	in      *incoming         // nil: this is not the other side
	request []byte            // of PSK mode: what is behind the hint, with the id of a key
	reply   []byte            // the private data of the reply
	server  *secure.PSKServer // nil: not computed, or the peer is authenticated
	first   []byte            // what the peer's request says
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
	// firstMessage is what the peer says first. It has a turn of its own, because the connection
	// still handles it.
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
