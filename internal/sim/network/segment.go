package network

import "time"

type kind uint8

const (
	kindSyn kind = iota
	kindSynAck
	kindOpen // the acknowledgement of a SYN-ACK, which is sent immediately
	kindAck
	kindData
	kindFin
	kindReset
)

var kindNames = [...]string{"SYN", "SYN-ACK", "ACK", "ACK", "data", "FIN", "RST"}

func (k kind) String() string { return kindNames[k] }

// segment is a unit of travel. It belongs to the flow of the socket that sent it.
type segment struct {
	kind kind
	data []byte
	due  time.Time
}

// isRepeated reports whether the sender repeats the segment until it has arrived.
func (s *segment) isRepeated() bool {
	return s.kind != kindOpen && s.kind != kindAck && s.kind != kindReset
}

// Linux's times of retransmissions.
const (
	firstSyn   = time.Second // before a SYN is repeated
	firstRetry = 200 * time.Millisecond
	mostRetry  = 2 * time.Minute
	mostDelay  = 40 * time.Millisecond // of an acknowledgement
)

// backoffTime returns how long to wait after n attempts.
func backoffTime(first time.Duration, n int) time.Duration {
	return min(first<<min(n, 20), mostRetry)
}
