// Package native is the data path of RDMA adapters through libibverbs (rdma-core), without cgo and
// without headers at build time. Importing it is enough:
//
//	import _ "github.com/rdmactor/rdmactor/native"
//
// Then the driver of the kernel's rdma_cm (cmid/ucm) opens every adapter that libibverbs has a
// driver for. The software devices rxe and siw stay with package verbs/uverbs, which needs no
// library. To use libibverbs for them, too, give a [Provider] to ucm.Config.
//
// # What importing it costs
//
// The program is linked dynamically, because libibverbs needs the C library: it starts only where
// there is a dynamic loader, and not in an empty container. On musl (Alpine) it needs
// -ldflags "-I /lib/ld-musl-x86_64.so.1". So this package is a module of its own, and nothing in
// the core imports it. libibverbs itself is loaded when the first adapter is opened. A call of C
// costs 20 to 30 ns and no allocation. The sends of a turn are posted in one call for each queue
// pair, and a call polls up to 32 completions.
//
// # Ownership
//
// Everything that the library or a device sees is mapped memory, never Go's heap. Calls that may
// wait (ibv_modify_qp, ibv_destroy_qp, ibv_create_ah) are made off the loop. The library's
// descriptors of events do not block and are in the loop's epoll.
//
// # Ordering
//
// As in package verbs/uverbs, which does the bookkeeping.
//
// # Errors
//
// The device's own events (a port that goes down, another PKey) are reported as verbs.Reporter says.
//
// A [LibraryError] says which library, symbol or driver is missing, and what to install. A
// [CallError] names the function, the library's file with its version, and the errno. A
// uverbs.MemlockError says that RLIMIT_MEMLOCK is too small.
//
// Installed says which library and drivers a machine has; docs/adapters.md, how to try an adapter.
//
// # Limitations
//
// Linux on amd64 and arm64, with glibc or musl. Nobody has tried it on an adapter yet: the suites
// of conformance, actors, faults and interop run on libibverbs' drivers of rxe and siw.
// SendWithInvalidate is not supported: memory that ibv_reg_mr has registered cannot be invalidated
// by a peer. Datagrams need Ethernet or a global routing header. Only port 1 of an adapter is used
// for limits. A send that was not to be reported (no verbs.Signaled) and after which nothing has
// completed counts as flushed when its queue pair is destroyed, although the device may have sent
// it.
package native
