package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/verbs"
)

// pingClient is the role of -c. It has one connection, and implements that connection's talk.
type pingClient struct {
	s            *session
	c            *conn
	source, sink *verbs.MR
	established  bool
	round        int  // completed rounds
	written      bool // the sink was sent; the next message reports that it was written
	stopped      bool
	begun        time.Time // of the current round
	times        roundTimes
}

func (cl *pingClient) start(addr cmid.Addr) error {
	id, err := cl.s.ch.CreateID(cmid.PortSpaceTCP)
	if err != nil {
		return err
	}
	cl.c = cl.s.newConn(id, cl)
	cl.c.startStep("resolving the address")
	return id.ResolveAddr(cmid.AddrFrom(cl.s.source, 0), addr, cl.s.timeout)
}

func (cl *pingClient) handleEvent(ev cmid.Event) error {
	switch ev.(type) {
	case *cmid.AddrResolved:
		cl.c.startStep("resolving the route")
		return cl.c.ID.ResolveRoute(cl.s.timeout)
	case *cmid.RouteResolved:
		cl.c.startStep("connecting")
		return cl.connectToServer()
	case *cmid.Established:
		cl.established = true
		return cl.beginRound()
	}
	return nil
}

func (cl *pingClient) connectToServer() (err error) {
	if err := cl.c.setUpQueuePair(); err != nil {
		return err
	}
	if cl.source, err = cl.c.Alloc(cl.s.size, verbs.RemoteRead); err != nil {
		return err
	}
	if cl.sink, err = cl.c.Alloc(cl.s.size, verbs.LocalWrite|verbs.RemoteWrite); err != nil {
		return err
	}
	return cl.c.ID.Connect(nil, depthParams())
}

// beginRound takes the first step of a round.
func (cl *pingClient) beginRound() error {
	if cl.stopped || cl.s.count > 0 && cl.round == cl.s.count {
		cl.c.hangUp()
		return nil
	}
	fillRound(cl.source.Bytes, cl.round)
	for i := range cl.sink.Bytes { // shows whether the Write arrived
		cl.sink.Bytes[i] = 0xff
	}
	cl.written = false
	cl.begun = time.Now()
	cl.c.startStep(fmt.Sprintf("round %d, the server's read", cl.round))
	return cl.c.sendBuffer(bufferOf(cl.source))
}

// handleMessage handles the server's message that its Read or its Write is done.
func (cl *pingClient) handleMessage(buffer) error {
	if !cl.written {
		cl.written = true
		cl.c.startStep(fmt.Sprintf("round %d, the server's write", cl.round))
		return cl.c.sendBuffer(bufferOf(cl.sink))
	}
	cl.times.add(time.Since(cl.begun))
	if cl.s.validate {
		if err := compareData(cl.source.Bytes, cl.sink.Bytes); err != nil {
			return err
		}
	}
	if cl.s.verbose {
		fmt.Fprintf(cl.s.stdout, "ping data: %s\n", printedText(cl.sink.Bytes))
	}
	cl.round++
	return cl.beginRound()
}

// compareData reports the first byte that differs from the data sent.
func compareData(sent, got []byte) error {
	if bytes.Equal(sent, got) {
		return nil
	}
	i := 0
	for sent[i] == got[i] {
		i++
	}
	return fmt.Errorf("data mismatch at byte %d of %d: sent %#02x, got %#02x", i, len(sent), sent[i], got[i])
}

func (cl *pingClient) handleOther(*cmid.ID, cmid.Event) error { return nil } // it has only one ID

func (cl *pingClient) handleDone(verbs.Opcode) error { return nil } // a client only sends

func (cl *pingClient) mayDisconnect() bool { return false } // the client decides when to end

// stop lets the current round finish, because its answers are on their way.
func (cl *pingClient) stop() error {
	cl.stopped = true
	if !cl.established {
		return fmt.Errorf("%s: %w", cl.c.step, cli.ErrInterrupted)
	}
	return nil
}

func (cl *pingClient) handleOutcome(_ *conn, err error) error {
	if cl.times.n > 0 {
		fmt.Fprintf(cl.s.stderr, "%s of %s, %v\n", plural(cl.times.n, "round"), plural(cl.s.size, "byte"), cl.times)
	}
	if err == nil && cl.round < cl.s.count {
		return fmt.Errorf("%w after %d of %d rounds", cli.ErrInterrupted, cl.round, cl.s.count)
	}
	return err
}

func (cl *pingClient) isOver() bool { return cl.c.over }

// roundTimes are the durations of a client's rounds. In a round the server does a Read and a Write.
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

// String returns the times in the form of ping(8).
func (r roundTimes) String() string {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return fmt.Sprintf("min/avg/max = %.3f/%.3f/%.3f ms", ms(r.least), ms(r.sum)/float64(max(r.n, 1)), ms(r.most))
}
