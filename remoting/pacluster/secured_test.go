package pacluster

import (
	"flag"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/securityflags"
	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
)

// security is how a member's connections are secured.
func (r *role) security() (s *rdma.Security, closed func(), err error) {
	var f securityflags.Flags
	set := flag.NewFlagSet("", flag.ContinueOnError)
	f.Define(set)
	if err := set.Parse(r.Security); err != nil {
		return nil, nil, err
	}
	if s, closed, err = f.Open(func(string) {}); s != nil {
		s.NoAddresses = r.Proxied
	}
	return s, closed, err
}

// modes are the flags of members that have all the same key, or certificate, and the identity that
// they then have.
func modes(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"members":   {"--key", securitytest.KeyFile(t, securitytest.Key(t, "members"))},
		"localhost": securitytest.NewCerts(t).Server("member"),
	}
}

// Members that are secured call each other's grains, publish, gossip, and come and go as others do.
// Who has another key is none of them.
func TestSecuredMembers(t *testing.T) {
	for identity, flags := range modes(t) {
		t.Run(identity, func(t *testing.T) {
			all := roles(t, 3)
			for i := range all {
				all[i].Security = flags
			}
			m := startAll(t, all...)
			for i := range 10 {
				where := m[0].do("where g%d", i)
				if there := m[1].do("where g%d", i); there != where {
					t.Errorf("g%d is at %s and at %s", i, where, there)
				}
			}
			if got, want := m[0].do("identities"), sorted(identity, identity); got != want {
				t.Errorf("its peers are %s, want %s", got, want)
			}
			m[1].do("subscribe topic")
			m[2].do("publish topic text")
			m[1].want("heard text ", "it has subscribed")
			m[0].do("set colour red")
			m[2].until("red", "get colour")
			ids := grainsAt(m[0], m[2].role.Name, 5)
			m[2].leaves()
			m[0].knows(m[0].role.Name, m[1].role.Name)
			for _, id := range ids {
				if got := m[0].do("where %s", id); got == m[2].role.Name {
					t.Errorf("%s is still at the member that has left", id)
				}
			}
			again := start(t, m[2].role)
			for _, c := range append(m[:2:2], again) {
				c.knows(all[0].Name, all[1].Name, all[2].Name)
			}
			silent(m[0], m[1], again)
		})
	}
}

// A process with another key, which the provider shows to all, reaches nobody, and nobody reaches
// it. What does not need it goes on.
func TestMemberWithAnotherKey(t *testing.T) {
	all := roles(t, 3)
	for i := range all {
		all[i].Security = []string{"--key", securitytest.KeyFile(t, securitytest.Key(t, "members"))}
	}
	all[1].Security = all[0].Security
	m := startAll(t, all...)
	for i, from := range m {
		for j, to := range all {
			want := to.Name
			if i != j && (i == 2 || j == 2) {
				want = "error future: dead letter"
			}
			if got := from.do("activate %s g", to.Name); got != want {
				t.Errorf("%s asks %s: %q, want %q", from.role.Name, to.Name, got, want)
			}
		}
	}
	silent(m...)
}
