// Package uabi is the binary interface of the kernel's rdma_cm: what is written to
// /dev/infiniband/rdma_cm, and the one place that writes it.
//
// The structs and constants are generated from ucm-abi.json and ucm-consts.json, which hold what a
// C compiler and the kernel's headers say. That Go lays them out alike is checked by the compiler:
// sizes when this package is built, each field's place when it is tested. Commands that later ones
// have replaced, and what has no user here, are left out. Numbers are in host byte order, and
// addresses in sockaddrs, GIDs and GUIDs in network order.
//
// A [File] may be used by several goroutines at once. Its methods are system calls; which of them
// the kernel lets wait is said there. Their errors are bare errnos, a [ResponseError], or a
// verbs.CredentialsError.
//
// Traps of the interface that are handled here: a command's whole struct is supplied, because most
// handlers copy it whatever the header says; a response goes to memory that neither moves nor is
// collected during the call; read(2), writev(2) and POLLOUT do not exist; a descriptor answers
// EACCES once its process has changed its credentials, and to a process that inherited it: it is
// opened with O_CLOEXEC.
package uabi

//go:generate go run ./internal/generate

// Command is a command's number.
type Command uint32
