package swarm

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// regressions are seeds that once failed. A seed means what it meant as long as the drawing of the
// workloads named here does not change; what was mended has a test of its own, too.
var regressions = []struct {
	seed    uint64
	only    string
	without string
	was     string
}{
	{576, "echo", "1-3,13-14", "a process was killed while it opened its runtime, and the loop was left at the end"},
	{286, "echo", "", "a workload answered the failure of its Close with another Close, for ever"},
}

func TestRegressions(t *testing.T) {
	for _, c := range regressions {
		items, err := ParseItems(c.without)
		if err != nil {
			t.Fatal(err)
		}
		plan := Draw(c.seed, c.only)
		plan.Without(items)
		if r := plan.Twice(t, nil); r.Failure != "" {
			t.Errorf("seed %d fails again (%s): %s", c.seed, c.was, r.Failure)
		}
	}
}

// TestSeeds plays a few worlds. Fresh ones are played by .ci/run.
func TestSeeds(t *testing.T) {
	for seed := range uint64(30) {
		if r := Draw(seed).Twice(t, nil); r.Failure != "" {
			t.Errorf("seed %d: %s", seed, r.Failure)
		}
	}
}

// TestPlan leaves items out of plans. Their numbers stay, and the plan says what is left.
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
