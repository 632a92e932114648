package remoting

import (
	"github.com/rdmactor/rdmactor/internal/ring"
)

// waiters are senders that wait for room in the queue for a peer (Block), in the order in which
// they came: one with a large message is not passed by others for ever. They belong to the peer's
// mutex.
type waiters struct {
	ring.Ring[waiter]
	reserved int // bytes for those that were let go on and have not put their messages yet
}

type waiter struct {
	size int
	room chan struct{} // closed when there is
}
