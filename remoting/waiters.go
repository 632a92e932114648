package remoting

import "github.com/rdmactor/rdmactor/internal/ring"

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

// awaitRoom waits until there is room for m, of size bytes, which is reserved then, or until the
// peer has ended.
func (p *peer) awaitRoom(size int, m *outgoing) {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	w := waiter{size, make(chan struct{})}
	p.waiters.Push(w)
	p.releaseLocked()
	p.mu.Unlock()
	<-w.room
	p.node.rt.Scheduler().Resume()
	m.room = p
}

// unreserveLocked gives back what is reserved for m here.
func (p *peer) unreserveLocked(m *outgoing, size int) {
	if m.room == p {
		m.room = nil
		p.waiters.reserved -= size
	}
}

// giveBack gives back what is reserved for m, wherever that is: it is not sent there.
func (m *outgoing) giveBack(size int) {
	if p := m.room; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.unreserveLocked(m, size)
		p.releaseLocked()
	}
}

// releaseLocked lets those go on who have room now. When the peer has ended all of them go on.
func (p *peer) releaseLocked() {
	for p.waiters.Len() > 0 {
		w := p.waiters.At(0)
		if !p.ended && !p.user.room(w.size+p.waiters.reserved) {
			return
		}
		p.waiters.reserved += w.size
		close(p.waiters.Pop().room)
	}
}
