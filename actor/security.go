package actor

import (
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// SecurityMode is how connections are secured.
type SecurityMode uint8

// The modes.
const (
	// Insecure neither authenticates nor encrypts.
	Insecure SecurityMode = iota
	// PSK authenticates by pre-shared keys, both sides, and encrypts every message
	// (docs/security-wire.md).
	PSK
	// TLS authenticates by certificates, both sides or the listening one, and encrypts every
	// message.
	TLS
)

// String is the mode's name.
func (m SecurityMode) String() string {
	switch m {
	case Insecure:
		return "insecure"
	case PSK:
		return "PSK"
	case TLS:
		return "TLS"
	}
	return fmt.Sprintf("security mode %d", uint8(m))
}

// MarshalText is String's text.
func (m SecurityMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Security says how connections are secured, and who may have one. A peer that has another mode, or
// none, is refused, whichever side has connected.
//
// In a mode:
//   - Owners get a ConnectRequest when its peer is authenticated, and not before. Handlers are
//     spawned, and Route is called, then.
//   - Private data is encrypted and authenticated, and has up to 255 bytes on every device.
//     Connecting takes a round trip more.
//   - Accept.Param has no effect: the connection of the device's is made before the owner decides.
//   - Raw, Manual and datagram identifiers are refused.
type Security struct {
	Mode SecurityMode
	// Keys has the keys of PSK mode.
	Keys *Keyring
	// TLS is the configuration of TLS mode. It must not be changed any more: certificates that are
	// replaced come from its GetCertificate, GetClientCertificate or GetConfigForClient.
	//
	// A listener needs a certificate. ClientAuth says whether its peers need one too; with
	// tls.RequireAndVerifyClientCert they do (mTLS), with tls.NoClientCert they are nobody
	// (ConnectRequest.Identity is ""). Who connects needs RootCAs, and a ServerName if the
	// certificate has another name than the host, or the address, that it dials.
	//
	// The version is TLS 1.3 and the protocol (ALPN) "rdmactor/1", whatever it says. Sessions are
	// not resumed, and there is no early data. Its functions run on goroutines of their own, for as
	// long as the handshake may take.
	TLS *tls.Config
	// NoAddresses leaves the addresses out of what both sides have to see alike. It is for networks
	// that translate addresses, and both sides must have it.
	NoAddresses bool
	// AllowOneSided is what peers may be granted, and what this side does with memory of its
	// peers: RemoteRead, RemoteWrite, RemoteAtomic. One-sided operations are not protected: whoever
	// is on the path reads and changes what they move. 0: none are allowed (ErrSecured).
	AllowOneSided Access
	// Authorize decides about a peer that is authenticated: r.Identity says who it is, r.Peer from
	// where it comes, and r.PrivateData what it says. If reject is nil, it may connect, and limits
	// say what all peers with its identity may have, from now on. Otherwise it is rejected so.
	// Authorize is called on the connection's loop, before the owner gets the request, must not
	// block, and may read r until it returns. If it panics or calls runtime.Goexit, the peer is
	// refused. nil: every peer that is authenticated may connect, and in TLS mode those that need
	// no certificate; their limits are the defaults.
	Authorize func(r *ConnectRequest) (limits PeerLimits, reject *Reject)
}

// Credential is an identity and a key of it. It prints as the identity.
type Credential = secure.Credential

// HandshakeError is why a secured connection was not made. errors.Is: EACCES, and what its Err is:
// EAGAIN if the peer has had too much to do, and another attempt may have more luck.
type HandshakeError = secure.HandshakeError

// TamperedError is why a secured connection has ended: a message is not what the peer has sent at
// its place. errors.Is: EBADMSG.
type TamperedError = secure.TamperedError

// ErrSecured: the operation would not be protected, and Security.AllowOneSided does not name it.
var ErrSecured = fmt.Errorf("one-sided operations are not protected, and Security.AllowOneSided does not name this one: %w", unix.EPERM)

// Keyring has the keys of PSK mode: one to connect with, and those of peers that may connect. Both
// may change while there are connections: these stay, and later ones use what is there then. So a
// key is replaced in three steps: its listeners take two keys of the identity, then who connects
// uses the new one, then the listeners take only that. The zero Keyring has none. Any goroutine.
type Keyring struct {
	own   atomic.Pointer[secure.Credential]
	named sync.Map // of *secure.Credential, by the name of who has the key, too
	peers atomic.Pointer[secure.Keys]
}

// Use has c be what this side connects with from now on. An error is EINVAL's.
func (k *Keyring) Use(c Credential) error {
	if _, err := secure.NewKeys(c); err != nil {
		return fmt.Errorf("rdma: %w", err)
	}
	k.own.Store(&c)
	return nil
}

// Accept has list be the peers that may connect from now on, in place of earlier ones. An identity
// may have two keys. An error is EINVAL's.
func (k *Keyring) Accept(list ...Credential) error {
	keys, err := secure.NewKeys(list...)
	if err != nil {
		return fmt.Errorf("rdma: %w", err)
	}
	k.peers.Store(keys)
	return nil
}

// secured reports whether connections have a mode.
func (c *IDConfig) secured() bool { return c.Security != nil && c.Security.Mode != Insecure }

// features is what a hello of this side's says, to a peer that says the same about suites.
func (c *IDConfig) features(peer secure.Features) secure.Features {
	if !c.secured() {
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
	case !c.secured():
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

// refusal is the private data of a reject that says why a request is refused.
func (c *IDConfig) refusal(own secure.Features, why secure.Refusal) []byte {
	h := wire.Hello{Features: uint8(own), Credits: c.Credits, Eager: kib, MaxMessage: kib}
	return h.Put([]byte{byte(why)})
}

// allows returns an error if peers may not be granted all of rights, in a mode.
func (c *IDConfig) allows(rights Access) error {
	if rights&remoteRights&^c.allowed() != 0 {
		return ErrSecured
	}
	return nil
}

// allowed is what of the remote rights a connection may use, and its peer.
func (c *IDConfig) allowed() Access {
	if c.secured() {
		return remoteRights & c.Security.AllowOneSided
	}
	return remoteRights
}
