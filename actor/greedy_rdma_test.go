//go:build linux && rdma

package actor

import "testing"

// A hundred greedy peers are nothing to a good one where the kernel has the receives, either: there
// all of a connection's are its own.
func TestKernelGreedyPeers(t *testing.T) {
	leavesNothing(t)
	sys := testSystem(t)
	const each = 24 // more than the window, so that some wait at their sender
	limits := WithLimits(Limits{SendQueue: each})
	g := greed{
		tb: t, server: openKernel(t, sys, limits), client: openKernel(t, sys, limits), listen: env(t, "RDMA_ADDR") + ":0",
		peers: 100, each: each, size: 1 << 10, opts: []IDOption{WithMessages(1<<10, 8)},
	}
	g.where = g.server.OffLoop()
	g.run()
}
