package workload

import (
	"errors"
	"fmt"
	"slices"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// Security is how the connections of a world are secured. The zero value means not at all.
type Security struct {
	Mode rdma.SecurityMode
	// OneSided allows one-sided operations, although nothing protects them.
	OneSided bool
}

// Secured reports whether they are secured.
func (s Security) Secured() bool { return s.Mode != rdma.Insecure }

// String describes it for people.
func (s Security) String() string {
	if s.OneSided {
		return s.Mode.String() + ", one-sided operations are allowed"
	}
	return s.Mode.String()
}

// addSecurity adds the security of connections to a process's configuration. Each machine has an
// identity, with a certificate or two keys. Processes use either key, as during a key replacement.
func (e *Env) addSecurity(p *world.Process, cfg *rdma.Config) {
	if !e.Security.Secured() {
		return
	}
	machine := slices.Index(e.Machines, p.Machine())
	s := &rdma.Security{Mode: e.Security.Mode}
	if e.Security.OneSided {
		s.AllowOneSided = rdma.RemoteRead | rdma.RemoteWrite | rdma.RemoteAtomic
	}
	cfg.Security = s
	if s.Mode == rdma.TLS {
		s.TLS = certificates().newTLSConfig(machine)
		return
	}
	s.Keys = new(rdma.Keyring)
	var all []rdma.Credential
	for m := range e.Machines {
		all = append(all, e.credentialOf(m, 0), e.credentialOf(m, 1))
	}
	own := e.credentialOf(machine, len(p.Machine().Name()+p.Name())%2)
	if err := errors.Join(s.Keys.Use(own), s.Keys.Accept(all...)); err != nil {
		e.failWorld("keys: %v", err)
	}
}

// keys is the number from which keys are filled, distinct from messages.
const keys = 1 << 21

// credentialOf returns one of the two credentials of a machine.
func (e *Env) credentialOf(machine, n int) (c rdma.Credential) {
	c.Identity = e.identityOf(machine)
	oracle.Fill(c.Key[:], keys, uint64(2*machine+n))
	return c
}

// identityOf returns a machine's identity for its peers; empty: it is not authenticated.
func (e *Env) identityOf(machine int) string {
	switch e.Security.Mode {
	case rdma.PSK:
		return fmt.Sprintf("machine %d", machine+1)
	case rdma.TLS:
		return fmt.Sprintf("spiffe://simulation/machine-%d", machine+1)
	}
	return ""
}

// judgeIdentity judges the identity and the destination of a request.
func (c *conn) judgeIdentity(r *rdma.ConnectRequest, machine int) {
	if want := c.w.e.Addr(c.spec.to, c.spec.listener); machine != c.spec.to || r.Local.String() != want {
		c.w.e.failWorld("the request of connection %d, which has dialled %s, has come to %v of machine %d", c.number, want, r.Local, machine)
	}
	if want := c.w.e.identityOf(c.machine); r.Identity != want {
		c.w.e.failWorld("the request of connection %d is from %q, and %q has sent it", c.number, r.Identity, want)
	}
}

// judgePeer judges the identity of an end's peer.
func (e *connEnd) judgePeer(ev *rdma.Established) {
	who := e.c.machine // in PSK mode both sides have the identity of its key
	if e.side == 0 && e.c.w.e.Security.Mode == rdma.TLS {
		who = e.c.spec.to
	}
	if want := e.c.w.e.identityOf(who); ev.Identity != want {
		e.c.w.e.failWorld("%s has the peer %q, want %q", e.key, ev.Identity, want)
	}
}
