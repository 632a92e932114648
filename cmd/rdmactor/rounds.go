package main

import (
	"fmt"
	"time"
)

// roundTimes is how long a client's rounds took, each of which is a Read and a Write of the
// server's.
type roundTimes struct {
	n           int
	least, most time.Duration
	sum         time.Duration
}

func (r *roundTimes) add(d time.Duration) {
	if r.n == 0 || d < r.least {
		r.least = d
	}
	r.most = max(r.most, d)
	r.sum += d
	r.n++
}

// String is what ping(8) says of its own.
func (r roundTimes) String() string {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return fmt.Sprintf("min/avg/max = %.3f/%.3f/%.3f ms", ms(r.least), ms(r.sum)/float64(max(r.n, 1)), ms(r.most))
}

// plural is "1 round", "2 rounds".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
