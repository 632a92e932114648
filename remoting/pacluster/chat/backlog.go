package main

import "github.com/asynkron/protoactor-go/actor"

// Bounds on the lines under way to a person, and on those waiting behind them.
const (
	window      = 64         // lines
	takenEvery  = window / 4 // lines; the person reports each such batch as shown
	backlogMost = 1 << 20    // bytes
	lineBytes   = 128        // overhead of a line
)

// backlog has the lines of a room, or of the directory, for one person. A slow reader delays no
// other person, and occupies bounded memory: lines beyond the bound are left out, and the person
// sees how many.
type backlog struct {
	n       uint64   // lines so far, including those left out
	under   []uint64 // the numbers of the lines under way
	waiting []*heard
	bytes   int  // size of the waiting lines
	cut     bool // lines are left out until waiting is empty
}

// add queues a line, or leaves it out.
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

// taken records that the lines up to number n were shown. It reports whether lines were left out
// that the person does not know of yet.
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

// pump sends the lines that fit into the window.
func (b *backlog) pump(ctx actor.Context, to *actor.PID) {
	for m := b.next(); m != nil; m = b.next() {
		ctx.Request(to, m)
	}
}
