package rdmanet

import (
	rdma "github.com/rdmactor/rdmactor/actor"
)

// Addr is the address of one end of a stream: a net.Addr. It may be compared with ==, unless it is
// an AF_IB address.
type Addr struct{ rdma.Addr }

// Network returns "rdma".
func (Addr) Network() string { return "rdma" }
