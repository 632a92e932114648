//go:build vm

// Package kerneltest runs the tests that need a kernel with RDMA devices (tag rdma) in the machines
// of package vm. They are the conformance suite and the tests of the data path, of the actors and
// of the packages above them. Each runs on soft-RoCE and on soft-iWARP.
//
//	go test -tags vm ./lab/vm/kerneltest
//	go test -tags vm ./lab/vm/kerneltest -run 'TestPackages/6.1/siw/ucm'
package kerneltest

import (
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

const module = "github.com/rdmactor/rdmactor/"

// packages are the packages with tests for the guest, and the flags for them. If a package also has
// tests that do not need the kernel, the flags select those for the guest. The tests of faults run
// in package faulttest.
var packages = []struct {
	name  string
	flags []string
}{
	{"verbs/uverbs", nil},
	{"cmid/ucm", []string{"-test.skip=^TestFault"}},
	{"actor", []string{"-test.run=^TestKernel"}},
	{"rpc", []string{"-test.run=^TestKernel"}},
	{"rdmanet", []string{"-test.run=^TestKernel"}},
	{"remoting", []string{"-test.run=^TestKernel"}},
	{"cmd/rdmactor", []string{"-test.run=^TestKernel"}},
}

// TestPackages boots a machine for each kernel and kind of device. If a kernel crashes, only the
// tests in its machine are affected, and the current package runs once more. Afterwards the kernel
// must have nothing left of the tests.
func TestPackages(t *testing.T) {
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			for _, kind := range []string{"rxe", "siw"} {
				t.Run(kind, func(t *testing.T) {
					b := vmtest.NewBench(t, vm.Config{Kernel: kernel}, "")
					for _, p := range packages {
						t.Run(p.name[strings.LastIndex(p.name, "/")+1:], func(t *testing.T) {
							b.GoTest(t, module+p.name, vm.Env(kind), p.flags...)
						})
					}
					b.Clean(t)
				})
			}
		})
	}
}
