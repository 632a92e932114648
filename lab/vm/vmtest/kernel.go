package vmtest

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm"
)

// Resources returns the numbers of the kernel's RDMA objects as text. It leaves out the index of
// each device, which changes when the device is removed and added.
func Resources(t testing.TB, m *vm.Machine) string {
	t.Helper()
	return Run(t, m, scriptLimit, counts)
}

// counts prints counts instead of lists. Lists have names, but leave rows out when there are many.
const counts = "rdma resource show | sed 's/^[0-9]*: //' | sort"

// holders lists the RDMA objects of processes. The kernel's own objects have no pid.
const holders = "for kind in cm_id qp cq mr pd ctx srq; do rdma resource show $kind | grep ' pid '; done; true"

// scriptLimit is the time limit of a script that only reads state.
const scriptLimit = 2 * time.Minute

// settleLimit is how long the kernel may take to free the objects of a process that has ended. An
// idle machine needs a second.
const settleLimit = time.Minute

// WantResources waits until Resources is as before, and fails the test if that takes too long.
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

// complaints are texts in the kernel's log that show an error in the kernel.
var complaints = []string{"WARNING", "BUG", "Oops", "Call Trace", "general protection", "refcount", "blocked for more than"}

// WantNoComplaint fails the test if the kernel's log has a complaint. If the test has failed, it
// logs the kernel's log.
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
