package swarm

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSeeds plays a few worlds. .ci/run plays more of them, and fresh ones.
func TestSeeds(t *testing.T) {
	for seed := range uint64(30) {
		if r := Draw(seed).Twice(t, nil); r.Failure != "" {
			t.Errorf("seed %d: %s", seed, r.Failure)
		}
	}
}

// TestPlan removes items from plans. Numbers stay, and the plan lists the remaining items.
func TestPlan(t *testing.T) {
	for seed := range uint64(50) {
		all := Draw(seed).Items()
		for i, x := range all {
			if x.N != i+1 || x.Text == "" {
				t.Fatalf("seed %d: item %d is %v", seed, i+1, x)
			}
		}
		p := Draw(seed)
		p.Without([]int{2, len(all)})
		for _, x := range p.Items() {
			if x.N == 2 || x.N == len(all) || x != all[x.N-1] {
				t.Errorf("seed %d: item %v is left, and was %v", seed, x, all[x.N-1])
			}
		}
		if got, want := len(p.Items()), len(all)-2; got != want {
			t.Errorf("seed %d: %d items are left, want %d", seed, got, want)
		}
	}
}
