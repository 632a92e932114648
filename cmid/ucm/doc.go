// Package ucm is the kernel's rdma_cm as a [cmid.Driver]: /dev/infiniband/rdma_cm without
// librdmacm and without cgo.
//
// It manages connections on every device that Linux supports: InfiniBand, RoCE, iWARP, and the
// kernel's software devices rxe and siw. Queue pairs come from a [verbs.Provider]. The default is
// package uverbs, which drives rxe and siw; Config.Provider sets another one. If the provider
// cannot drive a device, identifiers connect nevertheless, and their owners supply the number of a
// queue pair that they have made themselves (cmid.ConnParam.QPNum).
//
//	drv := ucm.New()
//
// # Ownership
//
// A Driver may be opened on any number of loops; each has a separate event channel, which belongs
// to the loop's goroutine.
//
// Some commands may wait in the kernel: a connect on iWARP; an accept on InfiniBand, for which the
// kernel looks up a link address; and the destruction of queue pairs, and of identifiers that are
// half open or connected. They run on goroutines that all loops share, and their answers are
// posted to the loop. Each such goroutine occupies a thread while it waits. There are at most 1024
// of them each for connects, for accepts and for destructions, however many loops there are, and
// all of them are at most half of the threads that the process may still start: by pids.max of its
// control groups, RLIMIT_NPROC and the machine. A call that finds no thread waits for its turn
// without one. If the process may start no thread at all, a connect or an accept fails with a
// [ThreadsError], and a destruction waits. One peer gets at most a third of the threads. One loop,
// or the requests of one listener, get at most half. So the others always find one. Peers are
// distinguished by the address that they give. So requests forged under many addresses take turns
// from their own listener, but not from other listeners.
//
// An identifier's queue pair is gone when the identifier's destruction is reported, with Done or
// cmid.Closed. Until then its completion queue cannot be closed (EBUSY). An owner that cannot wait
// for that event calls verbs.QP.Destroy after DestroyID: that call blocks until the queue pair is
// gone.
//
// # Ordering
//
// Events are delivered in the kernel's order, at most 64 in a turn. After DestroyID nothing is
// reported for an identifier, even while the kernel is still destroying it. What its peer sees
// then is up to the kernel.
//
// # Errors
//
// Errnos are the kernel's. Open fails with an [OpenError] that names the missing module or
// permission; a connect beyond MaxConnects with a [BusyError]. EACCES from BindAddr means a port
// below 1024. From everything else it means what section Credentials describes.
//
// # Limitations
//
// On InfiniBand and RoCE private data comes padded with zeros. An application that must know its
// length puts the length inside. The kernel treats 127.0.0.1 as a wildcard, so a listener there
// has its port on every local address. This package rejects requests to other addresses than
// loopback (RejectConsumerDefined), and does not report them.
//
// Devices are distinguished by the kernel's index, which needs Linux 5.9 and netlink, or else by
// node GUID. Two devices on one network interface, such as rxe0 and siw0, have the same GUID.
// Without indices the first of them by name is taken for both. A function of SR-IOV has the GUID 0
// until its host sets one. Without indices it is not used: BindAddr and ResolveAddr fail with a
// [NodeGUIDError].
//
// # Credentials
//
// The kernel takes commands for an open file only from threads that have the same credentials
// object as the thread that opened it. setuid(2), capset(2) and similar calls give each thread of
// a Go program a new one. So a program that calls them after it has started can no longer use the
// kernel's devices: not through a channel that it has opened before, and on some of its threads
// not through one that it opens later. Such a program must drop its privileges before it is
// executed (systemd's User=, setpriv(1)), or execute itself again afterwards.
//
// The error is a [verbs.CredentialsError]. Open returns it if it finds threads that differ; else
// the first command that is refused returns it. Then the channel's file is closed. That frees all
// kernel objects that were made through the file, which commands can no longer do. Every
// identifier gets DeviceRemoval with that error. A DestroyID then succeeds when the kernel has
// freed the identifier. An identifier whose DestroyID the kernel refuses for another reason is
// named in a [HeldError].
package ucm
