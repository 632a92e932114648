package swarm

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSeeds(t *testing.T) {
	for seed := range uint64(30) {
		if r := Draw(seed).Twice(t, nil); r.Failure != "" {
			t.Errorf("seed %d: %s", seed, r.Failure)
		}
	}
}
