package main

import "time"

// side is one of the two processes, and its end of the link.
type side int

const (
	server side = iota
	client
)

func (s side) String() string { return [...]string{"server", "client"}[s] }

// scale is the durations of a soak. Those of the short soak differ from those of the long one.
type scale struct {
	Idle, Gone   time.Duration // of the keepalive
	Connect      time.Duration // how long a connection may take
	Storm        time.Duration // duration of consecutive faults
	Calm         time.Duration // following time in which no error is expected
	Settle       time.Duration // delay before Calm, from the last fault
	Pause        time.Duration // maximum between two faults
	Longest      time.Duration // the longest cut
	Every        time.Duration // between two samples of memory
	WorthJudging bool          // growth can be judged
}

// recoveryBound returns the time within which work must continue after a fault: a dead connection
// is noticed after Gone and a third of Idle, TCP gives up a handshake or retransmits after as long
// as the link was cut, then come pauses before attempts, and their time.
func (s scale) recoveryBound() time.Duration {
	return 2*s.Gone + s.Longest + 3*s.Connect + 15*time.Second
}

var (
	slow = scale{
		Idle: 4 * time.Second, Gone: 12 * time.Second, Connect: 10 * time.Second, Storm: 90 * time.Second, Calm: 12 * time.Second,
		Settle: 30 * time.Second, Pause: 5 * time.Second, Longest: 36 * time.Second, Every: 5 * time.Second, WorthJudging: true,
	}
	fast = scale{
		Idle: 300 * time.Millisecond, Gone: time.Second, Connect: 3 * time.Second, Storm: 8 * time.Second, Calm: 2 * time.Second,
		Settle: 5 * time.Second, Pause: time.Second, Longest: 2 * time.Second, Every: time.Second,
	}
)

// byDefault returns a scale with the default times of actor.Keepalive, so that connections outlive
// the longest cut.
func (s scale) byDefault() scale {
	s.Idle, s.Gone = 15*time.Second, 45*time.Second
	s.Storm, s.Settle = 180*time.Second, 75*time.Second
	return s
}
