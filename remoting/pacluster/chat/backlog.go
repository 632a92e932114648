package main

import "github.com/asynkron/protoactor-go/actor"

// How much may be under way to a person, and how much may wait behind that.
const (
	window      = 64         // lines
	takenEvery  = window / 4 // lines, of which the person reports that they were shown
	backlogMost = 1 << 20    // bytes
	lineBytes   = 128        // of a line besides its text
)

// backlog is what a room, or the directory, has for one person, who may not read as fast as others
// write. So nobody waits for anybody else, and nobody has others keep much for them. Lines beyond
// it are left out, and the person sees how many.
type backlog struct {
	n       uint64   // lines so far, with those that were left out
	under   []uint64 // the numbers of those that are under way
	waiting []*heard
	bytes   int  // size of the waiting lines
	cut     bool // lines are left out until nothing waits any more
}

// add takes a line.
func (b *backlog) add(m *heard) {
	b.n++
	if b.cut = b.cut || b.bytes > backlogMost; b.cut {
		return
	}
	m.N = b.n
	b.waiting = append(b.waiting, m)
	b.bytes += len(m.Line.Text) + lineBytes
}

// next returns the next line to send. nil: none.
func (b *backlog) next() *heard {
	if len(b.waiting) == 0 || len(b.under) == window {
		return nil
	}
	m := b.waiting[0]
	b.waiting[0] = nil
	b.waiting = b.waiting[1:]
	b.bytes -= len(m.Line.Text) + lineBytes
	b.under = append(b.under, m.N)
	return m
}

// taken notes that the lines up to that number were shown. It reports whether some have been left
// out that the person cannot know of yet.
func (b *backlog) taken(n uint64) (missed bool) {
	for len(b.under) > 0 && b.under[0] <= n {
		b.under = b.under[1:]
	}
	if !b.cut || len(b.waiting) > 0 {
		return false
	}
	b.cut = false
	return true
}

// pump sends the lines for which there is room.
func (b *backlog) pump(ctx actor.Context, to *actor.PID) {
	for m := b.next(); m != nil; m = b.next() {
		ctx.Request(to, m)
	}
}
