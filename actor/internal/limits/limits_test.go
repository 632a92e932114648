package limits

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

func yes() bool { return true }

// A person is refused for the first limit that it has reached, and nothing of a refused connection
// counts.
func TestIdentitiesHaveLimits(t *testing.T) {
	var i Identities
	now := time.Unix(1, 0)
	alice, bob := Person{Identity: "alice"}, Person{Identity: "bob"}
	take := func(who Person, may May, want wire.Refusal) {
		t.Helper()
		if got := i.Take(who, may, 64, now); got != want {
			t.Errorf("%s: %v, want %v", who.Identity, got, want)
		}
	}
	two := May{Connections: 2, Memory: yes}
	take(alice, two, 0)
	take(alice, two, 0)
	take(alice, two, wire.RefusedConnections)
	take(bob, two, 0)
	i.Free(alice)
	take(alice, May{Memory: func() bool { return false }}, wire.RefusedMemory)
	take(alice, two, 0)

	slow := May{ConnectRate: 1, Memory: yes}
	for range 4 {
		take(bob, slow, 0)
		i.Free(bob)
	}
	take(bob, slow, wire.RefusedConnects)
	now = now.Add(time.Second)
	take(bob, slow, 0)
}

// A greedy person leaves places for others.
func TestIdentitiesShare(t *testing.T) {
	const most = 64
	var i Identities
	may := May{Memory: yes}
	taken := 0
	for taken <= most && i.Take(Person{Identity: "greedy"}, may, most, time.Time{}) == 0 {
		taken++
	}
	if taken < most/4 || taken > most/2 {
		t.Errorf("the greedy one has %d of %d", taken, most)
	}
	for _, a := range []string{"10.0.0.1", "10.0.0.2"} {
		who := Person{Address: netip.MustParseAddr(a)}
		if got := i.Take(who, may, most, time.Time{}); got != 0 {
			t.Errorf("%s is refused: %v", a, got)
		}
	}
}
