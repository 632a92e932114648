package outbox

// waiter is a sender that waits for room in a lane. They have it in the order in which they came:
// one with a large message is not passed by others for ever.
type waiter struct {
	size int
	room chan struct{} // closed when there is
}

// Wait has a sender wait until there is room for so many bytes, which is reserved then: room is
// closed.
func (l *Lane) Wait(size int) (room <-chan struct{}) {
	w := waiter{size, make(chan struct{})}
	l.waiters.Push(w)
	return w.room
}

// Waiters is how many senders wait for room.
func (l *Lane) Waiters() int { return l.waiters.Len() }

// Unreserve gives back what is reserved for one that was let go on.
func (l *Lane) Unreserve(size int) { l.reserved -= size }

// Release lets those go on who have room now, or all of them: the lane is of no more use.
func (l *Lane) Release(all bool) {
	for l.waiters.Len() > 0 {
		size := l.waiters.At(0).size
		if !all && !l.Room(size) {
			return
		}
		l.reserved += size
		close(l.waiters.Pop().room)
	}
}
