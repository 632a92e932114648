//go:build vm

// Package faulttest runs the tests TestFault... of cmid/ucm and actor in a machine of each kernel.
// In them peers are killed, devices, modules, interfaces and files are removed, and requests and
// connects get no answer. No process may hang. Afterwards the kernel must have nothing left of the
// tests, and no complaint in its log.
//
//	go test -tags vm ./lab/vm/faulttest
//	go test -tags vm ./lab/vm/faulttest -run 'TestFaults/6.1/siw/actor'
package faulttest

import (
	"testing"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

const (
	ucm   = "github.com/rdmactor/rdmactor/cmid/ucm"
	actor = "github.com/rdmactor/rdmactor/actor"
	// whole matches the tests that remove from the machine what other tests need. They run alone.
	whole = "^TestFault(FilesMissing|ModulesMissing|User|ThreadsLimited|ObjectsLimited|NoNodeGUID)$"
	// overflow matches a test that siw of both kernels does not survive. siw forgets a connect
	// until its MPA timeout, and then drops one reference too many to the listener (siw_cep_put in
	// siw_destroy_listen: "refcount_t: underflow"). On siw this is the last test of a machine.
	overflow = "^TestFaultBacklogOverflows$"
)

var kinds = []string{"rxe", "siw"}

// TestFaults runs the tests of both devices side by side, because each waits for the kernel most of
// the time.
func TestFaults(t *testing.T) {
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			b := vmtest.NewBench(t, vm.Config{Kernel: kernel}, "")
			for _, kind := range kinds {
				t.Run(kind+" alone", func(t *testing.T) { b.GoTest(t, ucm, vm.Env(kind), "-test.run", whole) })
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
							b.GoTest(t, ucm, vm.Env(kind), "-test.run", "^TestFault", "-test.skip", skip)
						})
						t.Run("actor", func(t *testing.T) { b.GoTest(t, actor, vm.Env(kind), "-test.run", "^TestFault") })
					})
				}
			})
			b.Clean(t)
			t.Run("siw overflows", func(t *testing.T) { b.GoTest(t, ucm, vm.Env("siw"), "-test.run", overflow) })
		})
	}
}
