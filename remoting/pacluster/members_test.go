package pacluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/rdmactor/rdmactor/remoting"
)

// A goodbye is a claim of the member at the address of the node that has sent it, whatever member
// that node claims to be.
func TestClaimOfAnother(t *testing.T) {
	for claimed, want := range map[string]string{"a1": "", "b1": "b1", "": "b1", "x1": ""} {
		m := &Member{sys: actor.NewActorSystem()}
		m.governor = newGovernor(m, 0)
		m.governor.handleListed(cluster.Members{member("a1"), member("b1"), member(m.sys.ID)})
		why := fmt.Errorf("%w: %w", remoting.ErrBlocked, &blocked{side{3, "a:1", true}})
		m.handleRefused(remoting.Peer{Name: "b:1", Member: claimed}, why)
		if got := strings.Join(sortedKeys(m.governor.rules.claims), " "); got != want {
			t.Errorf("a goodbye of b:1, which claims to be %q, is a claim of %q, want %q", claimed, got, want)
		}
		m.sys.Shutdown()
	}
}
