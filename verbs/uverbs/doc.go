// Package uverbs is the data path of the kernel's soft devices, soft-RoCE (rxe) and soft-iWARP
// (siw), in pure Go: commands written to /dev/infiniband/uverbsN, and queues that the kernel maps
// into the process. Its [Provider] serves the driver of the kernel's rdma_cm.
//
// # What a turn costs
//
// Receives are posted and completions polled without a system call. Sends are written into their
// queue immediately and announced at the end of the loop's turn, one system call per queue pair
// that has sent something. Before a loop waits, it asks to be woken by the next completion. That
// costs one more system call on rxe, and none on siw. A queue pair whose sends the kernel refuses
// has failed, and its owner is notified (QPFatal). siw also refuses sends while the queue pair's
// state is being changed, so the announcement is repeated for up to a second.
//
// # What may wait
//
// Modify to RTR and CreateAH look for a link address, which takes a second without an answer.
// Destroy waits for packets in flight, for seconds if the peer's host has died. ModifyLater,
// CreateAHLater and DestroyLater do the waiting off the loop. Messages received on a queue pair
// that is being modified are kept, and delivered when the loop has the result. Other queue pairs of
// the same completion queue do not wait.
//
// # Differences between the devices
//
// Neither device lets a peer invalidate a memory region: rxe supports that for memory windows only,
// and siw does not report it to its user. So SendWithInvalidate is not supported. siw has no
// immediate data, no atomic operations and no datagrams. It cannot distinguish solicited
// completions from others, so a queue that asks for solicited completions only is notified of all.
// On rxe such a queue is also notified of the next completion of any kind, and of a failed send
// only if a receive is flushed with it.
//
// siw can send before its connection is reported as established, but only the report has the number
// of Reads that the peer serves. Reads that are posted earlier are limited by the device alone. If
// there are more than the peer serves, siw never sends anything again. So post no Reads before
// Established. On rxe the bound is set with the transition to RTS.
//
// # Memory
//
// A region is separately mapped memory, never Go's heap. The kernel pins its pages, and
// RLIMIT_MEMLOCK bounds how many ([MemlockError]). Go's race detector does not see what a peer
// writes there. When the device is closed or removed, regions that were not freed are deregistered
// but stay mapped. They can be read until they are freed, and only Free unmaps them.
package uverbs
