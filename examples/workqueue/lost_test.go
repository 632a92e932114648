package workqueue_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/overlay"
)

// TestALostJobIsFound removes the line that takes back the job of a lost worker. The simulation
// must find that with its default seeds.
func TestALostJobIsFound(t *testing.T) {
	list, err := overlay.Write("../..", t.TempDir(), overlay.Edit{
		File: "examples/workqueue/queue.go",
		Old:  "c.Waiting = append(c.Waiting, job)",
		New:  "_ = job",
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "test", "-overlay", list, "-run", "^TestNoJobIsLost$", "-count=1", ".").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not done") {
		t.Fatalf("jobs are lost, and no seed shows it: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}
