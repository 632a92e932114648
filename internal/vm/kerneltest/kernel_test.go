//go:build vm

// Package kerneltest runs the packages' tests that need a kernel with RDMA devices (tag rdma) in the machines of package vm: the
// conformance suite, the data path, the actors, and on demand the differential test, each on soft-RoCE and on soft-iWARP.
//
//	go test -tags vm ./internal/vm/kerneltest
//	go test -tags vm ./internal/vm/kerneltest -run 'TestPackages/6.1/siw/ucm'
//	go test -tags vm -timeout 60m ./internal/vm/kerneltest -run 'TestPackages/6.1' -args -random
package kerneltest

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/vm"
	"github.com/rdmactor/rdmactor/internal/vm/vmtest"
)

const module = "github.com/rdmactor/rdmactor/"

// packages are those with tests for the guest, and their flags. Of those packages whose other tests have nothing to do with the kernel
// only the guest's are run; the tests of faults are package faulttest's.
var packages = []struct {
	name  string
	flags []string
}{
	{"verbs/uverbs", nil},
	{"cmid/ucm", []string{"-test.skip=^TestFault"}},
	{"actor", []string{"-test.run=^TestKernel"}},
}

// random adds the differential test: random, and minutes long.
var random = flag.Bool("random", false, "run the random command sequences of internal/differential as well")

// TestPackages boots a machine for each kernel and kind of device, so that a kernel that falls over takes only its own part along.
func TestPackages(t *testing.T) {
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			for _, kind := range []string{"rxe", "siw"} {
				t.Run(kind, func(t *testing.T) {
					m := vmtest.Boot(t, vm.Config{Kernel: kernel})
					before := resources(t, m)
					for _, p := range packages {
						t.Run(p.name[strings.LastIndex(p.name, "/")+1:], func(t *testing.T) {
							vmtest.GoTest(t, m, module+p.name, vm.Env(kind), p.flags...)
						})
					}
					if *random {
						t.Run("differential", func(t *testing.T) {
							vmtest.GoTest(t, m, module+"internal/differential", vm.Env(kind), "-test.run=^Test(RoCE|Siw)$", "-test.timeout=20m")
						})
					}
					clean(t, m, before)
				})
			}
		})
	}
}

// clean holds that the tests have left nothing in the kernel, whose own objects are those of before, and that it has not complained.
func clean(t *testing.T, m *vm.Machine, before string) {
	t.Helper()
	if after := resources(t, m); after != before {
		t.Errorf("left behind: there were\n%sand are\n%s", before, after)
	}
	for line := range strings.Lines(vmtest.Run(t, m, time.Minute, "dmesg")) {
		for _, bad := range []string{"WARNING", "BUG", "Oops", "Call Trace", "general protection", "refcount"} {
			if strings.Contains(line, bad) {
				t.Errorf("the kernel complains: %s", strings.TrimSpace(line))
			}
		}
	}
}

// resources counts the kernel's RDMA objects, without the numbers of the devices, which change when they come back. The lists of the
// objects would have names, but they leave rows out when there are many.
func resources(t *testing.T, m *vm.Machine) string {
	t.Helper()
	return vmtest.Run(t, m, time.Minute, "rdma resource show | sed 's/^[0-9]*: //' | sort")
}
