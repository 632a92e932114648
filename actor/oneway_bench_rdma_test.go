//go:build linux && rdma

package actor

import "testing"

// BenchmarkKernelOneWay measures 64-byte messages one way over a kernel's device, both ends on one
// loop.
func BenchmarkKernelOneWay(b *testing.B) {
	const batch = 128
	rt := openKernel(b, testSystem(b), Config{Limits: Limits{SendQueue: ahead*batch + 1}})
	oneWay(b, rt, env(b, "RDMA_ADDR"), batch, IDConfig{})
}
