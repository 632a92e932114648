package rpc

// What a server holds for a connection: requests until they are answered, and answers and items
// until the connection takes them. Of the memory that its clients share (shares) it has parts
// granted, and needs none for the first ownMemory bytes. So a connection whose client takes what it
// has asked for seldom asks.
//
//   - A request that there is no memory for is refused: ErrOverloaded.
//   - Requests behind answers that the client does not take stay where they are, without credit.
//   - Items wait.
//   - An answer that there is no memory for is ErrOverloaded instead. Its handler has run.
//
// Whatever others hold, ownMemory bytes and one answer or item can wait on every connection: a
// client that takes what comes has all its answers.

const (
	// ownMemory is what every connection has to itself.
	ownMemory = 64 << 10
	// grantStep is what is granted at a time.
	grantStep = 64 << 10
)

// purse is what a connection has of its server's memory. Its fields are under out.mu.
type purse struct {
	of       *shares // nil: a client's connection, which needs none
	share    *connShare
	requests int // bytes of them
	granted  int
}

// may reports whether n more bytes may be held. mu is held.
func (o *out) may(n int) bool {
	p := &o.purse
	more := o.bytes + p.requests + n - ownMemory - p.granted
	if p.of == nil || more <= 0 {
		return true
	}
	more = (more + grantStep - 1) / grantStep * grantStep
	if !p.of.take(p.share, memory, more) {
		return false
	}
	p.granted += more
	return true
}

// room reports whether n more bytes may wait for the connection. mu is held.
func (o *out) room(n int) bool { return o.bytes <= ownMemory || o.may(n) }

// settle gives back what is granted and not needed. mu is held.
func (o *out) settle() {
	p := &o.purse
	if p.granted == 0 {
		return
	}
	spare := p.granted - max(o.bytes+p.requests-ownMemory, 0)
	if spare >= 2*grantStep || spare == p.granted {
		p.granted -= spare
		p.of.give(p.share, memory, spare)
	}
}
