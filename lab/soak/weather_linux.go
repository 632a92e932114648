package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// weather is the treatment of packets in one direction. It may be changed at any time.
type weather struct {
	Delay, Jitter time.Duration // every packet is delayed by Delay, and up to Jitter more
	Loss          float64       // fraction of packets that is lost
}

func (w weather) String() string {
	if w == (weather{}) {
		return "clear"
	}
	return fmt.Sprintf("delay %v to %v, loss %.1f %%", w.Delay, w.Delay+w.Jitter, w.Loss*100)
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
