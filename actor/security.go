package actor

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
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
	// Authorities returns the authorities for a handshake in TLS mode, of both sides: it takes the
	// place of RootCAs and ClientCAs, so that authorities can be replaced while there are
	// connections, too. (A listener could use GetConfigForClient. Who connects has nothing else:
	// VerifyConnection does not know the address that was dialled, and its Identity would be "".) A
	// pool that was returned must not be changed any more. nil is refused. Connections stay.
	Authorities func() *x509.CertPool
	// NoAddresses leaves the addresses out of what both sides have to see alike. It is for networks
	// that translate addresses, and both sides must have it. Without the addresses, who is dialled
	// can relay the handshake to another server with the same key. The relay reads nothing that is
	// sealed, but the connection's memory is open to it, because one-sided operations come from the
	// queue pair that it has with each side. So give such connections no memory, or use TLS with a
	// name for each server.
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

// HandshakeError is why a secured connection was not made. errors.Is: EACCES, and what its Err is:
// EAGAIN if the peer has had too much to do, and another attempt may have more luck.
type HandshakeError = secure.HandshakeError

// TamperedError is why a secured connection has ended: a message is not what the peer has sent at
// its place. errors.Is: EBADMSG.
type TamperedError = secure.TamperedError

// ErrSecured: the operation would not be protected, and Security.AllowOneSided does not name it.
var ErrSecured = fmt.Errorf("one-sided operations are not protected, and Security.AllowOneSided does not name this one: %w", unix.EPERM)
