package actor

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// SecurityMode is a method of securing connections.
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

// String returns the mode's name.
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

// MarshalText returns String's text.
func (m SecurityMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Security sets how connections are secured, and which peers may connect. A peer that has another
// mode, or none, is refused, whichever side has connected.
//
// In a mode:
//   - Owners get a ConnectRequest when its peer is authenticated, and not before. Handlers are
//     spawned, and Route is called, then.
//   - Private data is encrypted and authenticated, and has up to 255 bytes on every device.
//     Connecting takes a round trip more.
//   - Accept.Param has no effect: the device's connection is made before the owner decides.
//   - Raw, Manual and datagram identifiers are refused.
type Security struct {
	Mode SecurityMode
	// Keys has the keys of PSK mode.
	Keys *Keyring
	// TLS is the configuration of TLS mode. It must not be changed afterwards: replacements of
	// certificates come from its GetCertificate, GetClientCertificate or GetConfigForClient.
	//
	// A listener needs a certificate. ClientAuth decides whether its peers need one too; with
	// tls.RequireAndVerifyClientCert they do (mTLS), with tls.NoClientCert they have no identity
	// (ConnectRequest.Identity is ""). The connecting side needs RootCAs, and a ServerName if the
	// certificate has another name than the host, or the address, that it dials.
	//
	// The version is TLS 1.3 and the protocol (ALPN) "rdmactor/1", whatever the configuration
	// contains. Sessions are not resumed, and there is no early data. Its functions run off the
	// loops, for as long as the handshake may take.
	TLS *tls.Config
	// Authorities returns the authorities for a handshake in TLS mode, of both sides: it takes the
	// place of RootCAs and ClientCAs, so that authorities can be replaced while there are
	// connections, too. (A listener could use GetConfigForClient. The connecting side has nothing
	// else: VerifyConnection does not know the address that was dialled, and its Identity would be
	// "".) A returned pool must not be changed afterwards. nil is refused. Connections stay.
	Authorities func() *x509.CertPool
	// NoAddresses removes the addresses from the values that must be the same for both sides. It is
	// for networks that translate addresses, and both sides must have it. Without the addresses,
	// the dialled peer can relay the handshake to another server with the same key. The relay
	// cannot read sealed messages, but the connection's memory is open to it, because one-sided
	// operations come from the queue pair that it has with each side. So give such connections no
	// memory, or use TLS with a name for each server.
	NoAddresses bool
	// AllowOneSided are the rights that peers may be granted, and that this side may use on memory
	// of its peers: RemoteRead, RemoteWrite, RemoteAtomic. One-sided operations are not protected:
	// any machine on the path can read and change their data. 0: none are allowed (ErrSecured).
	AllowOneSided Access
	// Authorize decides on a peer that is authenticated: r.Identity is its identity, r.Peer its
	// address, and r.PrivateData its private data. If reject is nil, it may connect, and limits
	// apply to all peers with its identity, from now on. Otherwise it is rejected with reject.
	// Authorize is called on the connection's loop, before the owner gets the request, must not
	// block, and may read r until it returns. If it panics, the peer is refused. nil: every peer
	// that is authenticated may connect, and in TLS mode those that need no certificate; their
	// limits are the defaults.
	Authorize func(r *ConnectRequest) (limits PeerLimits, reject *Reject)
}

// HandshakeError is the error of a secured connection that was not made: What describes it, and Err
// is the cause, or nil. errors.Is: EACCES, and the errors in Err: EAGAIN if the peer was
// overloaded, so that another attempt may succeed.
type HandshakeError = secure.HandshakeError

// TamperedError is the cause if a secured connection ends because a message is not the one that the
// peer has sent at its place. What names the message. errors.Is: EBADMSG.
type TamperedError = secure.TamperedError

// ErrSecured: the operation would not be protected, and Security.AllowOneSided does not name it.
var ErrSecured = fmt.Errorf("one-sided operations are not protected, and Security.AllowOneSided does not name this one: %w", unix.EPERM)
