// Package uverbs is the data path of the kernel's soft devices, soft-RoCE (rxe) and soft-iWARP
// (siw), in pure Go: commands written to /dev/infiniband/uverbsN, and queues that the kernel maps
// into the process. Its [Provider] serves the driver of the kernel's rdma_cm.
//
// # What a turn costs
//
// Receives are posted and completions polled without a system call. Sends are written into their
// queue at once and announced at the end of the loop's turn, one system call per queue pair that
// has sent something. A loop that waits asks to be woken by the next completion: one more on rxe,
// none on siw. A queue pair whose sends the kernel refuses is over, and its owner is notified
// (QPFatal). siw refuses also while somebody changes the queue pair's state at that moment: it is
// asked again, for a second.
//
// # What may wait
//
// Modify to RTR and CreateAH look for a link address, for a second where nobody answers. Destroy
// waits for packets that are under way, for seconds if their host has died. ModifyLater,
// CreateAHLater and DestroyLater do so off the loop. The receives of a queue pair that is being
// modified are kept, and delivered when the loop knows how that has ended; another queue pair of
// the same completion queue does not wait.
//
// # Differences between the devices
//
// Neither can take a memory region back for a peer: rxe does it to memory windows only, siw does
// not report it to its user. So SendWithInvalidate is not supported. siw has no immediate data, no
// atomic operations, no datagrams, and cannot distinguish solicited completions from others: a
// queue that asked for those only is notified of all. On rxe, a queue that asks for solicited
// completions only is notified of the next one all the same, and of a failed send only if a
// receive is flushed with it.
//
// siw can send before its connection is reported as established, and only then is known how many
// Reads the peer serves. Reads that are posted earlier are bounded by the device alone: if they
// are more than the peer serves, siw sends nothing any more. So post none before. rxe gets the
// bound with its way into the state RTS.
//
// # Memory
//
// A region is memory mapped for it, never Go's heap: the kernel pins its pages, which
// RLIMIT_MEMLOCK bounds ([MemlockError]). What a peer writes there is seen by Go's race detector
// as little as what a system call writes. Closing the device, or its removal, ends the
// registration of what was not freed and leaves it mapped: it can be read until it is freed, and
// is given back by nothing else.
package uverbs
