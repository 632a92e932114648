package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Without a Security, connections stay on the loopback interface: a program that needs others has
// to specify how they are secured, if only as Insecure. The owner of an address does not matter,
// but who can reach it: this machine's own address on a network is beyond loopback, and so is a
// listener on the wildcard.

// ErrNoSecurity: an address is beyond loopback, and neither Config.Security nor IDConfig.Security
// specifies how connections are secured. Set one of them, to a mode (PSK, TLS) or, if all machines
// that reach the network are trusted, to &Security{Mode: Insecure}.
//
// Raw, Manual and datagram identifiers, which no mode can secure, may use every address, and so may
// devices whose network is inside the process (package actortest).
var ErrNoSecurity = fmt.Errorf("this address is beyond loopback, and no Security is set: set Config.Security or IDConfig.Security "+
	"to a mode, as in &Security{Mode: PSK, Keys: keys} (or TLS), or to &Security{Mode: Insecure} on a network whose machines are all trusted: %w", unix.EACCES)

// checkExposure returns an error if cmd goes beyond loopback, and no Security specifies how that is
// secured.
func (e *endpoint) checkExposure(cmd Command) error {
	if e.cfg.Security != nil || e.cfg.Raw || e.cfg.Manual || e.id.Datagram() || e.l.ch.Enclosed() {
		return nil
	}
	var addr Addr
	var inside bool
	switch c := cmd.(type) {
	case *cmid.Listen:
		addr = e.id.Info().Local
		inside = onLoopback(addr)
	case *cmid.ResolveAddr: // it would send a request beyond loopback
		addr = c.Dst
		inside = onLoopback(addr) || addr.IsWildcard()
	case *cmid.Connect:
		addr = e.id.Info().Peer
		inside = onLoopback(addr) || addr.IsWildcard() // the wildcard is this host
	default:
		return nil
	}
	if inside {
		return nil
	}
	if cmd.Op() == states.OpResolveAddr { // nothing else in the answer names it
		return fmt.Errorf("%v: %w", addr, ErrNoSecurity)
	}
	return ErrNoSecurity
}

func onLoopback(a Addr) bool { return a.IB == nil && a.Addr().Unmap().IsLoopback() }
