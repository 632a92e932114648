package outbox

// waiter is a sender that waits for room in a lane. They have it in the order in which they came: a
// sender with a large message is not overtaken forever.
type waiter struct {
	size int
	room chan struct{} // closed when there is
}

// Wait queues a sender until there is room for so many bytes, which is then reserved: room is
// closed.
func (l *Lane) Wait(size int) (room <-chan struct{}) {
	w := waiter{size, make(chan struct{})}
	l.waiters.Push(w)
	return w.room
}

// Waiters is how many senders wait for room.
func (l *Lane) Waiters() int { return l.waiters.Len() }
