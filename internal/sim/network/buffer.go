package network

// queue is a byte queue.
type queue struct {
	b    []byte
	head int
}

func (q *queue) len() int { return len(q.b) - q.head }

func (q *queue) clear() { *q = queue{} }

func (q *queue) push(b []byte) {
	if q.head > 0 && q.head >= len(q.b)/2 {
		q.b = q.b[:copy(q.b, q.b[q.head:])]
		q.head = 0
	}
	q.b = append(q.b, b...)
}

// pop moves up to len(b) bytes to b.
func (q *queue) pop(b []byte) int {
	n := copy(b, q.b[q.head:])
	if q.head += n; q.head == len(q.b) {
		q.b, q.head = q.b[:0], 0
	}
	return n
}

// sender is the sending half of a connection. Positions count from the start of the connection. The
// FIN has one, too.
type sender struct {
	size    int    // maximum of bytes that may wait for an acknowledgement
	bytes   queue  // not yet sent
	una     uint64 // everything before it is acknowledged
	next    uint64 // everything before it is sent
	edge    uint64 // the peer has room for everything before it
	fin     bool   // a FIN follows bytes
	finSent bool
}

// dataTo returns the end of the sent bytes.
func (o *sender) dataTo() uint64 {
	if o.finSent {
		return o.next - 1
	}
	return o.next
}

// unackedBytes returns how many bytes are not acknowledged.
func (o *sender) unackedBytes() int { return int(o.next-o.una) + o.bytes.len() }

// isWritable implements Linux's rule for writability: a third of the buffer is free.
func (o *sender) isWritable() bool { return o.size-o.unackedBytes() >= (o.unackedBytes()+1)/2 }

// receiver is the receiving half of a connection.
type receiver struct {
	size   int   // of the buffer
	bytes  queue // not yet read
	next   uint64
	shown  uint64 // the edge that the peer knows
	before uint64 // how many of the peer's bytes were read
}

// windowEdge returns the position up to which there is room.
func (i *receiver) windowEdge() uint64 { return i.before + uint64(max(i.size, i.bytes.len())) }
