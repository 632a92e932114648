package network

import "time"

type kind uint8

const (
	kindSyn kind = iota
	kindSynAck
	kindOpen // the acknowledgement of a SYN-ACK, which is sent at once
	kindAck
	kindData
	kindFin
	kindReset
)

var kindNames = [...]string{"SYN", "SYN-ACK", "ACK", "ACK", "data", "FIN", "RST"}

func (k kind) String() string { return kindNames[k] }

// segment is what travels. It belongs to the flow of the socket that has sent it.
type segment struct {
	kind kind
	data []byte
	due  time.Time
}

// repeated says whether the sender repeats the segment until it has arrived.
func (s *segment) repeated() bool {
	return s.kind != kindOpen && s.kind != kindAck && s.kind != kindReset
}

// Times of retransmissions, as Linux has them.
const (
	firstSyn   = time.Second // until a SYN is repeated
	firstRetry = 200 * time.Millisecond
	mostRetry  = 2 * time.Minute
	mostDelay  = 40 * time.Millisecond // of an acknowledgement
)

// backoff is how long to wait after n attempts before.
func backoff(first time.Duration, n int) time.Duration {
	return min(first<<min(n, 20), mostRetry)
}
