// Package workswith has tests only: programs that know nothing of RDMA run over package rdmanet,
// unchanged (docs/works-with.md).
package workswith
