package swarm

import (
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// TestAttacksAreReal checks that within a few worlds the attacks of a man in the middle are
// detected if no keys are used. The same worlds pass with keys.
func TestAttacksAreReal(t *testing.T) {
	for seed := range uint64(300) {
		p := Draw(seed, "connections")
		if !p.onPath {
			continue
		}
		p.Security.Mode = rdma.Insecure
		r := p.Play(t, nil)
		if r.Failure == "" {
			continue
		}
		if r := Draw(seed, "connections").Play(t, nil); r.Failure != "" {
			t.Errorf("seed %d fails with keys, too: %s", seed, r.Failure)
		}
		t.Logf("seed %d: %s", seed, r.Failure)
		return
	}
	t.Error("nobody notices what an attacker does to connections without keys")
}
