// Package native is the data path of RDMA adapters through libibverbs (rdma-core), without cgo and
// without headers at build time. Importing it is enough:
//
//	import _ "github.com/rdmactor/rdmactor/native"
//
// Then the driver of the kernel's rdma_cm (cmid/ucm) opens every adapter that libibverbs has a
// driver for. The software devices rxe and siw stay with package verbs/uverbs, which needs no
// library. To use libibverbs for them, too, pass a [Provider] in ucm.Config.
//
// # What importing it costs
//
// The program is linked dynamically, because libibverbs needs the C library: it starts only if
// there is a dynamic loader, and not in an empty container. On musl (Alpine) it needs -ldflags "-I
// /lib/ld-musl-x86_64.so.1". So this package is a separate module, and nothing in the core imports
// it. libibverbs itself is loaded when the first adapter is opened. A call of C costs 20 to 30 ns
// and no allocation. The sends of a turn are posted in one call for each queue pair, and a call
// polls up to 32 completions.
//
// # Ownership
//
// All memory that the library or a device sees is mapped memory, never Go's heap. Calls that may
// block (ibv_modify_qp, ibv_destroy_qp, ibv_create_ah) are made off the loop. The library's
// descriptors of events are non-blocking and are in the loop's epoll.
//
// # Ordering
//
// As in package verbs/uverbs, which does the bookkeeping.
//
// # Errors
//
// The device's events (a port that goes down, another PKey) are reported as verbs.Reporter
// specifies.
//
// A [LibraryError] names the missing library, symbol or driver, and what to install. A [CallError]
// names the function, the library's file with its version, and the errno. A uverbs.MemlockError
// reports that RLIMIT_MEMLOCK is too small.
//
// Installed returns a machine's library and drivers; docs/adapters.md describes how to try an
// adapter.
//
// # Limitations
//
// Linux on amd64 and arm64, with glibc or musl. It has not been tried on an adapter yet: the suites
// of conformance, actors, faults and interop run on libibverbs' drivers of rxe and siw.
// SendWithInvalidate is not supported: a peer cannot invalidate memory that ibv_reg_mr has
// registered. Datagrams need Ethernet or a global routing header. Only port 1 of an adapter is used
// for limits. When its queue pair is destroyed, an unsignaled send (no verbs.Signaled) after which
// nothing has completed counts as flushed, although the device may have sent it.
package native
