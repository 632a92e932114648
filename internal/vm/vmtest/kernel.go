package vmtest

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/vm"
)

// Resources counts the kernel's RDMA objects, without the numbers of the devices, which change
// when they come back.
func Resources(t testing.TB, m *vm.Machine) string {
	t.Helper()
	return Run(t, m, scriptLimit, counts)
}

// counts prints counts instead of lists. Lists have names, but leave rows out when there are many.
const counts = "rdma resource show | sed 's/^[0-9]*: //' | sort"

// holders lists the processes that have something. The kernel's own objects have no pid.
const holders = "for kind in cm_id qp cq mr pd ctx srq; do rdma resource show $kind | grep ' pid '; done; true"

// scriptLimit is the time limit of a script that only looks at something.
const scriptLimit = 2 * time.Minute

// settleLimit is how long the kernel may take to free what an ended process had. It takes a second
// on a machine with nothing else to do.
const settleLimit = time.Minute

// WantResources fails the test unless the kernel comes to have again what Resources counted before.
func WantResources(t testing.TB, m *vm.Machine, before string) {
	t.Helper()
	wantResources(t, m, before, settleLimit)
}

func wantResources(t testing.TB, m *vm.Machine, before string, limit time.Duration) {
	t.Helper()
	after := Resources(t, m)
	for deadline := time.Now().Add(limit); after != before && time.Now().Before(deadline); after = Resources(t, m) {
		time.Sleep(time.Second)
	}
	if after != before {
		t.Errorf("left behind: there were\n%sand are\n%s%s", before, after, Run(t, m, scriptLimit, holders))
	}
}

// complaints are what the kernel's log contains when something went wrong in the kernel.
var complaints = []string{"WARNING", "BUG", "Oops", "Call Trace", "general protection", "refcount", "blocked for more than"}

// WantNoComplaint fails the test if the kernel's log has a complaint. The log of a test that has
// failed is shown.
func WantNoComplaint(t testing.TB, m *vm.Machine) {
	t.Helper()
	log := Run(t, m, scriptLimit, "dmesg")
	for line := range strings.Lines(log) {
		for _, bad := range complaints {
			if strings.Contains(line, bad) {
				t.Errorf("the kernel complains: %s", strings.TrimSpace(line))
			}
		}
	}
	if t.Failed() {
		t.Logf("the kernel's log:\n%s", log)
	}
}
