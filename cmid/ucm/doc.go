// Package ucm is the kernel's rdma_cm as a [cmid.Driver]: /dev/infiniband/rdma_cm without
// librdmacm and without cgo.
//
// It manages connections on every device that Linux has: InfiniBand, RoCE, iWARP, and the kernel's
// software devices rxe and siw. Queue pairs come from a [verbs.Provider]: uverbs', which drives
// rxe and siw, unless Config.Provider is another one. Where that has none for a device,
// identifiers connect nevertheless, and owners bring a queue pair's number of their own
// (cmid.ConnParam.QPNum).
//
//	drv := ucm.New(ucm.Config{})
//
// # Ownership
//
// A Driver may be opened on any number of loops; each has an event channel of its own. Everything
// of it belongs to the loop's goroutine. Commands that the kernel may let wait (a connect on iWARP;
// an accept on InfiniBand, whose queue pair the kernel finds a link address for; the destruction of
// a queue pair, and of what is half open or connected) run on goroutines of the process's: their
// answer is posted to the loop. Each such goroutine has a thread while it waits. There are at
// most 1024 of them for connects, for accepts and for destructions each, however many loops there
// are. A call that finds no thread waits its turn without one. One peer has a third of the threads
// at most, and one loop, or the requests of one listener, half of them. So the others always find
// one. Peers are distinguished by the address
// that they give: requests forged under many addresses take as many turns at their own listener,
// not at others.
//
// An identifier's queue pair is gone when its destruction has come back: Done, or cmid.Closed.
// Until then its completion queue cannot be closed (EBUSY). An owner that cannot wait for that
// event calls verbs.QP.Destroy behind DestroyID, which waits.
//
// # Ordering
//
// Events are delivered in the kernel's order, at most 64 in a turn. After DestroyID nothing of an
// identifier is reported, also while the kernel takes its time to give it back. What happens to it
// at its peer is the kernel's: see cmid.
//
// # Errors
//
// Errnos are the kernel's. Open fails with an [OpenError] that says which module or permission is
// missing; a connect beyond MaxConnects with a [BusyError]. EACCES from BindAddr is a port below
// 1024, and from everything else what Credentials says.
//
// # Limitations
//
// On InfiniBand and RoCE private data comes padded with zeros. An application that must know its
// length puts the length inside. To the kernel 127.0.0.1 is a wildcard: a listener there has its
// port on every local address, and what comes for another one than loopback is rejected here
// (RejectConsumerDefined), and nobody is notified. Devices are distinguished by the kernel's
// index, which needs Linux 5.9 and netlink; else by node GUID: of two on one network interface,
// such as rxe0 and siw0, which have the same, the first by name is then taken for both.
//
// # Credentials
//
// The kernel takes commands from threads with the very credentials that a file was opened with.
// setuid(2), capset(2) and their like give each thread of a Go program its own, so a program that
// uses them after it has started cannot use the kernel's devices: neither a channel that it has
// opened before, nor, on some of its threads, one that it opens later. Such a program drops its
// privileges before it is executed (systemd's User=, setpriv(1)), or executes itself again
// afterwards. It is reported with a [verbs.CredentialsError]: by Open, where the threads that are
// asked differ, else by the first command that is refused. Then the channel's file is closed,
// which gives back to the kernel what commands cannot any more; every identifier gets
// DeviceRemoval with that reason, and a DestroyID has succeeded when the kernel has nothing left
// of it. An identifier whose DestroyID the kernel refuses for another reason is named in a
// [HeldError].
package ucm
