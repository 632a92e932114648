//go:build vm

// Package faulttest runs the tests of faults, TestFault... of cmid/ucm and actor, in a machine of each kernel: peers that are killed,
// devices, modules, interfaces and files that go, requests and connects that nobody answers. No process hangs, the kernel holds nothing
// afterwards, and has nothing to complain of.
//
//	go test -tags vm ./internal/vm/faulttest
//	go test -tags vm ./internal/vm/faulttest -run 'TestFaults/6.1/siw/actor'
package faulttest

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/vm"
	"github.com/rdmactor/rdmactor/internal/vm/vmtest"
)

const (
	ucm   = "github.com/rdmactor/rdmactor/cmid/ucm"
	actor = "github.com/rdmactor/rdmactor/actor"
	// whole are the tests that take from the whole machine what others need: they run alone.
	whole = "^TestFault(FilesMissing|ModulesMissing|User)$"
	// overflow is what siw of both kernels does not stand: a connect that it forgets until its MPA timeout makes it drop a reference of
	// the listener's too many (siw_cep_put out of siw_destroy_listen: "refcount_t: underflow"). On siw it is a machine's last test.
	overflow = "^TestFaultBacklogOverflows$"
)

var kinds = []string{"rxe", "siw"}

// TestFaults runs the devices' tests side by side: most of the time one of them waits for the kernel.
func TestFaults(t *testing.T) {
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			m := vmtest.Boot(t, vm.Config{Kernel: kernel})
			before := resources(t, m)
			for _, kind := range kinds {
				t.Run(kind+" alone", func(t *testing.T) { vmtest.GoTest(t, m, ucm, vm.Env(kind), "-test.run", whole) })
			}
			t.Run("together", func(t *testing.T) {
				for _, kind := range kinds {
					t.Run(kind, func(t *testing.T) {
						t.Parallel()
						t.Run("ucm", func(t *testing.T) {
							skip := whole
							if kind == "siw" {
								skip += "|" + overflow
							}
							vmtest.GoTest(t, m, ucm, vm.Env(kind), "-test.run", "^TestFault", "-test.skip", skip)
						})
						t.Run("actor", func(t *testing.T) { vmtest.GoTest(t, m, actor, vm.Env(kind), "-test.run", "^TestFault") })
					})
				}
			})
			for deadline := time.Now().Add(15 * time.Second); resources(t, m) != before; time.Sleep(time.Second) {
				if time.Now().After(deadline) {
					t.Errorf("the kernel holds\n%sand before\n%s", resources(t, m), before)
					break
				}
			}
			wantNoComplaint(t, m)
			t.Run("siw overflows", func(t *testing.T) { vmtest.GoTest(t, m, ucm, vm.Env("siw"), "-test.run", overflow) })
		})
	}
}

// resources is how much the kernel has of each device, the numbers of which change when they come back.
func resources(t *testing.T, m *vm.Machine) string {
	t.Helper()
	return vmtest.Run(t, m, time.Minute, "rdma resource show | sed 's/^[0-9]*: //' | sort")
}

// wantNoComplaint looks into the kernel's log.
func wantNoComplaint(t *testing.T, m *vm.Machine) {
	t.Helper()
	log := vmtest.Run(t, m, time.Minute, "dmesg")
	for line := range strings.Lines(log) {
		for _, bad := range []string{"WARNING", "BUG", "Oops", "Call Trace", "general protection", "refcount", "blocked for more than"} {
			if strings.Contains(line, bad) {
				t.Errorf("the kernel complains: %s", strings.TrimSpace(line))
			}
		}
	}
	if t.Failed() {
		t.Logf("the kernel's log:\n%s", log)
	}
}
