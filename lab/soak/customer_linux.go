package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

// customer is the client process. Its workers each do one piece of work after the other.
type customer struct {
	*host
	ctx     context.Context // ends with the work
	workers sync.WaitGroup
	audits  chan fates
}

// The kinds of work. Each of them must continue after a fault.
const (
	smallCalls    = "small calls"
	loopCalls     = "calls on the loop"
	repeatedCalls = "idempotent calls"
	largeCalls    = "large calls"
	askedCalls    = "calls of actors"
	smallItems    = "streams of items"
	largeItems    = "streams of large items"
	smallMessages = "messages"
	largeMessages = "large messages"
	shortStreams  = "byte streams"
	longStream    = "chunks of a long byte stream"
)

var kindsOfWork = []string{
	smallCalls, loopCalls, repeatedCalls, largeCalls, askedCalls, smallItems, largeItems, smallMessages, largeMessages, shortStreams, longStream,
}

// every calls do repeatedly, until the work ends, with numbers from 1 on. Each call must end within
// the given time, measured by this process.
func (c *customer) every(pause time.Duration, work string, within time.Duration, do func(n uint64) error) {
	c.workers.Go(func() { c.work(pause, work, within, do) })
}

func (c *customer) work(pause time.Duration, work string, within time.Duration, do func(n uint64) error) {
	for n := uint64(1); ; n++ {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(rand.N(2 * pause)):
		}
		end := c.begin(work, within)
		err := do(n)
		if c.ctx.Err() != nil {
			err = nil // it was interrupted
		}
		end(err)
	}
}

// wait waits for an event that must come soon.
func (c *customer) wait(what string, closed <-chan struct{}) {
	select {
	case <-closed:
	case <-time.After(2 * grace):
		c.fault("%s do not end", what)
	}
}

// grace is by how much an operation may exceed its deadline.
const grace = 20 * time.Second

// lately are the numbers of the latest calls that the server cannot have executed.
type lately [never]uint64

// add handles the error of call n.
func (l *lately) add(n uint64, err error) {
	if e, ok := errors.AsType[*rpc.Error](err); ok && e.Fate.NotExecuted() {
		copy(l[1:], l[:])
		l[0] = n
	}
}

// hangUp asks an actor to end its work.
type hangUp struct{}

// another asks an actor to make a call, or to send a message.
type another struct{}
