package actor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// IDConfig configures an identifier. Zero fields have defaults. A listener's configuration, without
// its Context, is also that of its connections.
type IDConfig struct {
	// Handler gives each of a listener's connections a separate owner, which is spawned from these
	// Props on the connection's loop when the request arrives. That owner gets the ConnectRequest
	// and all later events. With a Handler, connections are spread over the loops (Config.Loops),
	// and handlers of one listener run concurrently. A handler is stopped when it has got Closed;
	// one that hands its connection over has to stop itself. The Props need no OnLoop. If they
	// spawn no actor, because their producer panics, the request is rejected. nil: the listener's
	// owner owns its connections.
	Handler *actor.Props
	// Route chooses the owner for each of a listener's requests, before any actor is notified of
	// it. The connection then lives on that owner's loop, like a connection that the owner itself
	// has created, and the owner gets the ConnectRequest and all later events. If reject is not
	// nil, the request is rejected with it. If both are nil, the listener's owner or Handler gets
	// the request. Route is called on the listener's loop, must not block, and may read r until it
	// returns. If it panics, the request is rejected. If reject has more private data than fits,
	// the peer gets none, and that is logged. nil: none.
	Route func(r *ConnectRequest) (owner *actor.PID, reject *Reject)
	// Hint goes with the request of a secured connection, and is for the Place of the peer's
	// listener. It is neither secret nor, when it is used, authenticated. 0: there is none.
	Hint uint32
	// Place is for listeners of secured connections with several loops (Config.Loops), where Route
	// is called too late to choose the loop of a connection. It returns an OnLoop actor, on whose
	// loop the connection then lives, or nil, if it does not recognize the hint. Any peer may send
	// any hint, so nothing else may depend on it. Place is called on the listener's loop for each
	// request with a hint, and must not block. If it panics, the request is rejected. nil: none.
	Place func(hint uint32) (near *actor.PID)
	// MaxMessage is the size of the largest message that the peer may send: 64 KiB. It is rounded
	// up to whole KiB, and is at most 1 GiB and half of Limits.ReceiveMemory. The peer chooses the
	// limit of the other direction (Established.MaxMessage).
	//
	// Messages of up to 64 KiB (16 KiB on the kernel's devices) are sent eagerly. Larger ones are
	// offered, and the receiving side reads them (RDMA Read) when it has memory for them; 8 may be
	// offered at a time. On a kernel's device that takes a protection domain and memory for this
	// connection alone. A side to which the ConnParam allows no Reads gets no larger messages, and
	// one that serves none cannot send them.
	MaxMessage int
	// MaxSend is the size of the largest message to a peer that has sent no hello (Raw, or
	// foreign), in bytes: MaxMessage, or for a foreign one the largest eager message; at most 64
	// MiB less 1 KiB. It costs no memory beforehand, unlike MaxMessage, which sizes the receives: a
	// program that sends commands of 4 KiB and gets answers of 16 bytes sets MaxSend to 4 KiB and
	// MaxMessage to 1 KiB. The hello of any other peer has the limit, and MaxSend is not used.
	MaxSend int
	// Credits are how many messages the peer may send ahead of those that the owner has consumed:
	// 32; at most 65,535.
	//
	// On the embedded device memory is taken when messages arrive. On the kernel's devices each
	// connection has, from its beginning, a receive for each credit and sixteen more. By default
	// these take 51 KiB while the peer sends no message of more than 1 KiB. They take 0.8 MiB while
	// it does, on a connection on which large messages cannot be offered, and at first on the side
	// that connects. Without memory for them a connection cannot be made (*ResourceError); without
	// memory for larger receives messages are offered.
	Credits int
	// Sends are how many sends a kernel's device may have at a time, at most 128; Limits.SendQueue
	// more wait in the connection. Each takes memory from the beginning. 0: as many as the known
	// credits of both sides can use, and without a hello as many as Credits. On the embedded device
	// it is always 128.
	Sends int
	// PortSpace is the port space: PortSpaceTCP. This package moves no messages for datagram
	// identifiers: their owner makes the queue pair, in a Call, before Connect or Accept.
	PortSpace cmid.PortSpace
	// QPType is the type of queue pair, if the port space leaves a choice: QPTypeUD makes an
	// identifier of PortSpaceIB one for datagrams. 0: the port space's default. An identifier is
	// not made if its port space or every device here lacks the type (Channel.CreateIDFor).
	QPType cmid.QPType
	// Domain is the protection domain that the connection shares with others of its owner, and with
	// them its memory. nil: the connection has a private one, if it has Memory. A listener's
	// connections are all in its Domain, so each of their peers can reach memory that is granted to
	// another: see Domain. A Manual identifier on InfiniBand is in none.
	Domain *Domain
	// Memory is how many bytes of memory for Read and Write a connection may have (AllocMemory):
	// none. In a Domain it is how many all connections there may have when this one allocates. With
	// Memory, or a Domain, the connection's queue pair is in a private protection domain, or in
	// that of the Domain, so that no other peer can reach the memory granted to its peer. On the
	// kernel's devices the connection's receive buffers are there, too, and its send buffers, which
	// are otherwise shared with other connections.
	Memory int
	// Stream is for messages that are parts of a whole, such as a stream of bytes. A Send for which
	// there is no memory then ends the connection, and nothing that was sent behind it leaves.
	// Without it only that message is missing (SendFailed).
	Stream bool
	// Keepalive is this connection's, or that of a listener's connections.
	Keepalive Keepalive
	// Transport is this connection's, or that of a listener's connections.
	Transport Transport
	// Security is this identifier's, or that of a listener's connections. nil: the runtime's.
	Security *Security
	// AcceptTimeout is the time after which an unanswered request is rejected: Timeouts.Request.
	AcceptTimeout time.Duration
	// Context, when it ends, destroys the identifier; Closed has the context's cause. nil: none.
	Context context.Context
	// Raw adds nothing of this package to the wire: no hello in the private data, no header before
	// a message, no credits. It is for peers that use the verbs directly. On the kernel's devices
	// there are as many receives as Credits, each posted again when its message was consumed, and
	// room for Sends. A message that finds no receive ends the connection on iWARP. On InfiniBand
	// its sender tries again, indefinitely unless Transport.RNRRetryCount sets a limit. On the
	// embedded device as many messages as Credits wait for the owner; then the connection is not
	// read any further, and TCP stops the sender. A request is rejected if the connections of its
	// loop need an eighth of Limits.ReceiveMemory for one message each (2,048 of 64 KiB), unless
	// MaxMessage is at most 4 KiB.
	//
	// There are no probes either (Keepalive): only the transport notices that a peer was cut off,
	// or that its machine is gone. On the embedded device a connection ends when the peer's machine
	// acknowledges nothing for 30 s, even if no message is in flight, or when the peer reads
	// nothing for so long (iwarp.Config.UserTimeout). On InfiniBand it ends when something was sent
	// again Transport.RetryCount times; the end of a peer to which nothing is sent goes unnoticed.
	// So does, on every device, a peer that freezes while no message is in flight.
	Raw bool
	// RefuseForeign is for identifiers that connect only to peers of this package. Without it, a
	// peer that sends no hello is accepted as foreign: ConnectRequest.Foreign and
	// Established.Foreign are set, and the connection is as with Raw. With it, a listener rejects
	// such a peer before any actor gets the request, and a Connect or Dial fails (ErrForeignPeer).
	RefuseForeign bool
	// Manual leaves to the owner the duties of an application in the man pages: Establish,
	// Disconnect in answer to the peer's, DestroyID. On InfiniBand the owner also makes the queue
	// pair; an iWARP device cannot connect without one, so there the runtime makes it. When the
	// peer has broken the protocol, the owner gets Disconnected while the device still has the
	// connection: it then sends Disconnect or DestroyID.
	Manual bool

	eager int // for tests: the size of the largest eager message, in bytes; 0: the device's
	rekey int // for tests: a secured side changes its key after so many messages; 0: when due
}

// ErrForeignPeer: the peer has sent no hello, and IDConfig.RefuseForeign is set.
var ErrForeignPeer = errors.New("the peer is foreign: it has sent no hello")

const (
	defaultMaxMessage = 64 << 10
	maxMessageMax     = 1 << 30
	kib               = 1 << 10
)

// withDefaults returns c with the defaults for an identifier of a runtime with cfg.
func (c IDConfig) withDefaults(cfg *Config) *IDConfig {
	c.MaxMessage = (min(positiveOr(c.MaxMessage, defaultMaxMessage), maxMessageMax) + kib - 1) / kib * kib
	c.MaxSend, c.Sends = max(c.MaxSend, 0), max(c.Sends, 0)
	c.Credits = min(positiveOr(c.Credits, datapath.DefaultCredits), 0xFFFF)
	c.Keepalive = c.Keepalive.or(cfg.Keepalive)
	c.Transport = c.Transport.Or(cfg.Transport)
	c.Security = cmp.Or(c.Security, cfg.Security)
	c.AcceptTimeout = positiveOr(c.AcceptTimeout, cfg.Timeouts.Request)
	return &c
}

// forConnections returns the configuration of a listener's connections.
func (c IDConfig) forConnections() *IDConfig {
	c.Context, c.Handler, c.Route, c.Place = nil, nil, nil, nil
	return &c
}

// addrInfo returns the properties with which the identifier is created.
func (c *IDConfig) addrInfo() *cmid.AddrInfo {
	return &cmid.AddrInfo{PortSpace: c.PortSpace, QPType: c.QPType}
}

// isSecured reports whether connections have a mode.
func (c *IDConfig) isSecured() bool { return c.Security != nil && c.Security.Mode != Insecure }

// helloFeatures returns the features of this side's hello, in answer to a peer with the same
// suites.
func (c *IDConfig) helloFeatures(peer secure.Features) secure.Features {
	if !c.isSecured() {
		return 0
	}
	if c.Security.Mode == TLS {
		return secure.FeatureTLS
	}
	return secure.PSKFeatures(peer.Suite())
}

// checkSecurity returns an error if the identifier cannot have its mode.
func (c *IDConfig) checkSecurity() error {
	var what string
	switch s := c.Security; {
	case !c.isSecured():
		return nil
	case s.Mode != PSK && s.Mode != TLS:
		what = "there is no " + s.Mode.String()
	case s.Mode == PSK && s.Keys == nil:
		what = "PSK mode needs Security.Keys"
	case s.Mode == TLS && s.TLS == nil:
		what = "TLS mode needs Security.TLS"
	case s.Mode == TLS && s.TLS.MaxVersion != 0 && s.TLS.MaxVersion < tls.VersionTLS13:
		what = "Security.TLS does not allow TLS 1.3"
	case c.Raw:
		what = "a Raw identifier cannot be secured: give it a Security with Insecure"
	case c.Manual:
		what = "a Manual identifier cannot be secured: give it a Security with Insecure"
	case s.AllowOneSided&^remoteRights != 0:
		what = "Security.AllowOneSided has rights that are no peer's"
	default:
		return nil
	}
	return fmt.Errorf("%s: %w", what, unix.EINVAL)
}

// errNoCertificate is the error of a listener in TLS mode without a certificate.
var errNoCertificate = fmt.Errorf("Security.TLS has no certificate to listen with: %w", unix.EINVAL)

// checkListen returns an error if peers could not connect to a listener in its mode.
func (c *IDConfig) checkListen() error {
	if !c.isSecured() || c.Security.Mode != TLS {
		return nil
	}
	if t := c.Security.TLS; len(t.Certificates) == 0 && t.GetCertificate == nil && t.GetConfigForClient == nil {
		return errNoCertificate
	}
	return nil
}

// refusalData returns the private data of a reject, with the reason of the refusal.
func (c *IDConfig) refusalData(own secure.Features, why wire.Refusal) []byte {
	h := wire.Hello{Features: uint8(own), Credits: c.Credits, Eager: kib, MaxMessage: kib}
	return h.Put([]byte{byte(why)})
}

// checkRights returns an error if peers may not be granted all of rights, in a mode.
func (c *IDConfig) checkRights(rights Access) error {
	if rights&remoteRights&^c.allowedRights() != 0 {
		return ErrSecured
	}
	return nil
}

// allowedRights returns the remote rights that a connection and its peer may use.
func (c *IDConfig) allowedRights() Access {
	if c.isSecured() {
		return remoteRights & c.Security.AllowOneSided
	}
	return remoteRights
}
