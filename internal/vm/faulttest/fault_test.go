//go:build vm

// Package faulttest runs the tests of faults, TestFault... of cmid/ucm and actor, in a machine of
// each kernel: peers that are killed, devices, modules, interfaces and files that go, requests and
// connects that nobody answers. No process hangs, the kernel holds nothing afterwards, and has
// nothing to complain of.
//
//	go test -tags vm ./internal/vm/faulttest
//	go test -tags vm ./internal/vm/faulttest -run 'TestFaults/6.1/siw/actor'
package faulttest

import (
	"testing"

	"github.com/rdmactor/rdmactor/internal/vm"
	"github.com/rdmactor/rdmactor/internal/vm/vmtest"
)

const (
	ucm   = "github.com/rdmactor/rdmactor/cmid/ucm"
	actor = "github.com/rdmactor/rdmactor/actor"
	// whole are the tests that take from the whole machine what others need: they run alone.
	whole = "^TestFault(FilesMissing|ModulesMissing|User)$"
	// overflow is what siw of both kernels does not stand: a connect that it forgets until its MPA
	// timeout makes it drop a reference of the listener's too many (siw_cep_put out of
	// siw_destroy_listen: "refcount_t: underflow"). On siw it is a machine's last test.
	overflow = "^TestFaultBacklogOverflows$"
)

var kinds = []string{"rxe", "siw"}

// TestFaults runs the devices' tests side by side: most of the time one of them waits for the
// kernel.
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
