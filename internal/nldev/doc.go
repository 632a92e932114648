// Package nldev asks Linux's kernel about its RDMA devices over netlink (RDMA_NL_NLDEV), as rdma(8)
// does. Each question has a socket of its own, and the goroutine that asks waits. Errors are the
// kernel's errnos, or unix.EPROTO for what no kernel sends.
package nldev
