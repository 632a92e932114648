package main

import "time"

// side is one of the two processes, and the end of the link that it is at.
type side int

const (
	server side = iota
	client
)

func (s side) String() string { return [...]string{"server", "client"}[s] }

// scale is how long things take. The short soak has other times than the long one.
type scale struct {
	Idle, Gone   time.Duration // of the keepalive
	Connect      time.Duration // how long a connection may take
	Storm        time.Duration // faults come for so long, one after the other,
	Calm         time.Duration // and then no error is expected for so long,
	Settle       time.Duration // once so much time has passed since the last fault
	Pause        time.Duration // the most between two faults
	Longest      time.Duration // the longest cut
	Every        time.Duration // between two samples of memory
	WorthJudging bool          // growth can be judged
}

// bound is within what time work goes on when a fault is over: a dead connection is noticed after
// Gone and a third of Idle, TCP gives up a handshake or sends again after as long as it was cut,
// then come pauses before attempts, and their time.
func (s scale) bound() time.Duration { return 2*s.Gone + s.Longest + 3*s.Connect + 15*time.Second }

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

// byDefault has the default times of actor.Keepalive, so that connections outlive the longest cut.
func (s scale) byDefault() scale {
	s.Idle, s.Gone = 15*time.Second, 45*time.Second
	s.Storm, s.Settle = 180*time.Second, 75*time.Second
	return s
}
