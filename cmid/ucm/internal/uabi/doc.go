// Package uabi is the binary interface of the kernel's rdma_cm: the frames for
// /dev/infiniband/rdma_cm, and the one place that writes them.
//
// The structs and constants are generated from ucm-abi.json and ucm-consts.json, which hold the
// values of a C compiler with the kernel's headers. The compiler checks that Go lays them out
// alike: it checks sizes when this package is built, and each field's offset when the tests are
// built. Commands that later ones have replaced, and parts that nothing here uses, are left out.
// Numbers are in host byte order. Addresses in sockaddrs, GIDs and GUIDs are in network order.
//
// A [File] may be used by several goroutines concurrently. Its methods are system calls; each
// states if it may wait in the kernel. Their errors are bare errnos, a [ResponseError], or a
// verbs.CredentialsError.
//
// The interface has traps, which are handled here:
//
//   - Most handlers copy a command's whole struct whatever the header says, so the whole struct is
//     supplied.
//   - A response goes to memory that must neither move nor be collected during the call.
//   - read(2), writev(2) and POLLOUT do not exist.
//   - A descriptor answers EACCES once its process has changed its credentials, and to a process
//     that inherited it. So it is opened with O_CLOEXEC.
package uabi

//go:generate go run ./internal/generate

// Command is a command's number.
type Command uint32
