//go:build vm

// Package nativetest runs the tests of module native that need a device (tag rdma) in the machines
// of package vm, through libibverbs' drivers of rxe and siw.
//
//	go test -tags vm ./lab/vm/nativetest -run 'TestNative/6.1/rxe'
package nativetest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNative boots a machine for each kernel and kind of device. Afterwards the kernel must have
// nothing left of the tests.
func TestNative(t *testing.T) {
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			for _, kind := range []string{"rxe", "siw"} {
				t.Run(kind, func(t *testing.T) {
					b := vmtest.NewBench(t, vm.Config{Kernel: kernel}, "")
					t.Run("tests", func(t *testing.T) { b.GoTest(t, "github.com/rdmactor/rdmactor/native", vm.Env(kind)) })
					t.Run("stranger", func(t *testing.T) { stranger(t, b, kind) })
					b.Clean(t)
				})
			}
		})
	}
}
