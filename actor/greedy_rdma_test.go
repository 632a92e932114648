//go:build linux && rdma

package actor

import "testing"

// A hundred greedy peers do not slow down a good one on the kernel's devices either: there each
// connection has private receives.
func TestKernelGreedyPeers(t *testing.T) {
	leavesNothing(t)
	sys := testSystem(t)
	const each = 24 // more than the window, so that some wait at their sender
	limits := Config{Limits: Limits{SendQueue: each}}
	g := greed{
		tb: t, server: openKernel(t, sys, limits), client: openKernel(t, sys, limits), listen: env(t, "RDMA_ADDR") + ":0",
		peers: 100, each: each, size: 1 << 10, cfg: IDConfig{MaxMessage: 1 << 10, Credits: 8},
	}
	g.where = g.server.OffLoop()
	g.run()
}
