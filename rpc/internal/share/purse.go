package share

const (
	// OwnMemory is the number of bytes that are reserved for every connection.
	OwnMemory = 64 << 10
	// grantStep is the unit of grants.
	grantStep = 64 << 10
)

// Purse is the memory of a connection. The first OwnMemory bytes are reserved. The rest has to be
// granted by the Account. So a connection whose client takes its answers seldom needs a grant. The
// caller locks. The zero Purse is a client's connection, which needs no grant.
type Purse struct {
	Of       *Conn // account that grants
	Requests int   // bytes of requests that are not answered
	granted  int
}

// May reports whether n more bytes may be kept. waiting is the number of bytes that wait for the
// connection.
func (p *Purse) May(waiting, n int) bool {
	more := waiting + p.Requests + n - OwnMemory - p.granted
	if p.Of == nil || more <= 0 {
		return true
	}
	more = (more + grantStep - 1) / grantStep * grantStep
	if !p.Of.Take(Memory, more) {
		return false
	}
	p.granted += more
	return true
}

// Settle returns granted memory that is not needed.
func (p *Purse) Settle(waiting int) {
	if p.granted == 0 {
		return
	}
	spare := p.granted - max(waiting+p.Requests-OwnMemory, 0)
	if spare >= 2*grantStep || spare == p.granted {
		p.granted -= spare
		p.Of.Give(Memory, spare)
	}
}
