// Package nldev asks Linux's kernel about its RDMA devices over netlink (RDMA_NL_NLDEV), as rdma(8)
// does. Each query uses a separate socket, and blocks its goroutine. Errors are the kernel's
// errnos, or unix.EPROTO for malformed answers.
package nldev
