package swarm

import (
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// TestAttacksAreReal wants what is sent without a key to be judged wrong when somebody is on the
// path, within a few worlds. With keys the same worlds pass.
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
