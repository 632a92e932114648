package workload

import (
	"errors"
	"fmt"
	"slices"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/oracle"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// Security is how the connections of a world are secured. The zero value is not at all.
type Security struct {
	PSK bool
	// OneSided says that one-sided operations are allowed, although nothing protects them.
	OneSided bool
}

// String names it, for people.
func (s Security) String() string {
	switch {
	case s.PSK && s.OneSided:
		return "PSK, one-sided operations are allowed"
	case s.PSK:
		return "PSK"
	}
	return "insecure"
}

// secure adds to the configuration of a process how its connections are secured. Each machine has
// an identity, with two keys. Processes use one or the other, as while keys are replaced.
func (e *Env) secure(p *world.Process, cfg *rdma.Config) {
	if !e.Security.PSK {
		return
	}
	machine := slices.Index(e.Machines, p.Machine())
	s := &rdma.Security{Mode: rdma.PSK, Keys: new(rdma.Keyring)}
	if e.Security.OneSided {
		s.AllowOneSided = rdma.RemoteRead | rdma.RemoteWrite | rdma.RemoteAtomic
	}
	var all []rdma.Credential
	for m := range e.Machines {
		all = append(all, e.credential(m, 0), e.credential(m, 1))
	}
	own := e.credential(machine, len(p.Machine().Name()+p.Name())%2)
	if err := errors.Join(s.Keys.Use(own), s.Keys.Accept(all...)); err != nil {
		e.fail("keys: %v", err)
	}
	cfg.Security = s
}

// keys numbers what keys are filled with, apart from messages.
const keys = 1 << 21

// credential is one of the two of a machine.
func (e *Env) credential(machine, n int) (c rdma.Credential) {
	c.Identity = e.identity(machine)
	oracle.Fill(c.Key[:], keys, uint64(2*machine+n))
	return c
}

// identity is who a machine is for its peers. Empty: nobody has looked.
func (e *Env) identity(machine int) string {
	if !e.Security.PSK {
		return ""
	}
	return fmt.Sprintf("machine %d", machine+1)
}

// introduced judges whom a request is from, and where it has come to.
func (c *conn) introduced(r *rdma.ConnectRequest) {
	if want := c.w.e.identity(c.machine); r.Identity != want {
		c.w.e.fail("the request of connection %d is from %q, and %q has sent it", c.number, r.Identity, want)
	}
}

// met judges who the peer of an end is.
func (e *connEnd) met(ev *rdma.Established) {
	if want := e.c.w.e.identity(e.c.machine); ev.Identity != want {
		e.c.w.e.fail("%s has the peer %q, want %q", e.key, ev.Identity, want)
	}
}
