// Package grpc shows gRPC's own client and server over RDMA connections: grpc.Server serves a
// listener of package rdmanet, and the client dials with rdmanet's Dialer. See its example.
package grpc
