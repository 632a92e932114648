package network

// queue is bytes in order.
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

// sender is what a connection sends. Positions count from the beginning of the connection. The FIN
// has one, too.
type sender struct {
	size    int    // the most bytes that may wait for an acknowledgement
	bytes   queue  // not sent yet
	una     uint64 // everything before it is acknowledged
	next    uint64 // everything before it is sent
	edge    uint64 // the peer has room for everything before it
	fin     bool   // a FIN follows bytes
	finSent bool
}

// dataTo is the end of the bytes that are sent.
func (o *sender) dataTo() uint64 {
	if o.finSent {
		return o.next - 1
	}
	return o.next
}

// waiting is how many bytes are not acknowledged.
func (o *sender) waiting() int { return int(o.next-o.una) + o.bytes.len() }

// roomy is Linux's rule for writability: a third of the buffer is free.
func (o *sender) roomy() bool { return o.size-o.waiting() >= (o.waiting()+1)/2 }

// receiver is what a connection has received.
type receiver struct {
	size   int   // of the buffer
	bytes  queue // not read yet
	next   uint64
	shown  uint64 // the edge that the peer knows
	before uint64 // of the peer's bytes, how many were read
}

// edge is the end of what there is room for.
func (i *receiver) edge() uint64 { return i.before + uint64(max(i.size, i.bytes.len())) }
