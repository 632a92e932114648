package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/verbs"
)

// Plan is a Test, its addresses and its duration.
type Plan struct {
	Test
	Local, Peer cmid.Addr     // if Local is zero, the routing tables choose
	WarmUp      time.Duration // not measured
	Duration    time.Duration // measured; ignored if Count is set
	Count       int           // messages to measure; 0: bounded by Duration
	// OwnMemory gives each message in flight separate memory on this side, as in a program that
	// sends different messages. Such messages are in the processor's caches less often than one
	// message that is sent repeatedly.
	OwnMemory bool
}

// Client runs tests one after the other.
type Client struct {
	h         *host
	connected bool
}

// Open opens the device for a Client.
func Open(cfg Config) (*Client, error) {
	cl := &Client{}
	h, err := openHost(cfg, cl.passEvent)
	cl.h = h
	return cl, err
}

// Connected reports whether a test that is over had a connection.
func (cl *Client) Connected() bool { return cl.connected }

// Close frees everything.
func (cl *Client) Close() error { return cl.h.close() }

// Run runs one test. If ctx ends first, the test ends too. It then returns what was measured until
// that time, or the error of ctx if nothing was measured. Only one goroutine at a time may call
// Run.
func (cl *Client) Run(ctx context.Context, p Plan) (Result, error) { return cl.runTest(ctx, newRun(p)) }

func newRun(p Plan) *run { return &run{Plan: p, step: "resolving", done: make(chan error, 1)} }

func (cl *Client) runTest(ctx context.Context, r *run) (Result, error) {
	if err := cl.h.runOnLoop(func() error { return r.createID(cl.h) }); err != nil {
		return Result{}, err
	}
	defer context.AfterFunc(ctx, func() {
		_ = cl.h.loop.Post(func() { r.interrupt(ctx.Err()) })
	})()
	err := <-r.done
	cl.connected = cl.connected || r.connected
	if err != nil {
		return Result{}, fmt.Errorf("%s of %s, %d bytes: %s: %w", r.Kind, r.Op, r.Size, r.step, err)
	}
	return r.result, nil
}

// interrupt ends a run early, with the results so far.
func (r *run) interrupt(why error) {
	measured := r.n - r.base
	switch {
	case r.result.Count > 0: // it is about to end
	case r.measure && measured > 0:
		r.result = r.newResult(measured, sinceNonZero(r.begun), stats.CPUTime()-r.cpu)
		r.c.hangUp()
	default:
		r.c.fail(why)
	}
}

// passEvent passes an event to the run of its identifier.
func (cl *Client) passEvent(id *cmid.ID, ev cmid.Event, answers *cmid.Pending) {
	answers.Answer(ev)
	r := id.Context.(*run)
	if err := r.handleEvent(ev); err != nil {
		r.c.fail(err)
	}
}

// run is one test under way.
type run struct {
	Plan
	c      *conn
	step   string
	done   chan error
	result Result
	path   *Path // once it is established

	connected bool
	begun     time.Time // start of the warm-up, then of the measurement
	cpu       time.Duration
	measure   bool
	base      int // value of n at the end of the warm-up
	n         int // messages known to have arrived, round trips, or Reads

	posted time.Time // latency: when the message was posted
	times  stats.Times

	ahead int // bandwidth: messages in flight
}

func (r *run) createID(h *host) error {
	id, err := h.ch.CreateID(cmid.PortSpaceTCP)
	if err != nil {
		return err
	}
	r.c = &conn{Endpoint: endpoint.Endpoint{ID: id}, h: h, test: r.Test, complete: r.countCompletion, ended: func(err error) { r.done <- err }}
	if r.OwnMemory {
		r.c.own = r.Depth
	}
	id.Context = r
	if err := h.cfg.Transport.Set(id); err != nil {
		r.c.fail(err)
		return nil
	}
	r.times = stats.NewTimes(3)
	r.c.watchProgress()
	if err := id.ResolveAddr(r.Local, r.Peer, h.cfg.Timeout); err != nil {
		r.c.fail(err)
	}
	return nil
}

func (r *run) handleEvent(ev cmid.Event) error {
	switch e := ev.(type) {
	case *cmid.AddrResolved:
		return r.c.ID.ResolveRoute(r.c.h.cfg.Timeout)
	case *cmid.RouteResolved:
		r.step = "connecting"
		if err := r.c.setUpQueuePair(r.clientShape()); err != nil {
			return err
		}
		return r.c.ID.Connect(encodeRequest(r.Test, r.c.memoryPlace()), r.c.h.cfg.Transport.ConnectParam(nil))
	case *cmid.Established:
		to, err := decodeAnswer(e.PrivateData)
		if err != nil {
			return err
		}
		return r.handleEstablished(to)
	case *cmid.Disconnected:
		if !r.c.ending && r.c.err == nil && e.Err == nil {
			r.c.err = errors.New("the peer has gone")
		}
		r.c.handleDisconnected(e.Err)
	case *cmid.Rejected:
		if why := printableText(e.PrivateData); why != "" {
			r.c.failWithoutPeer(fmt.Errorf("the server says: %s (%w)", why, e))
		}
		r.c.failWithoutPeer(e)
	case cmid.Failure:
		r.c.failWithoutPeer(e)
	}
	return nil
}

// printableText returns the peer's private data if that is printable text, and "" otherwise.
func printableText(b []byte) string {
	for i, x := range b {
		switch {
		case x == 0:
			return string(b[:i])
		case x < ' ' || x > '~':
			return ""
		}
	}
	return string(b)
}

// clientShape returns the resources that a client needs.
func (r *run) clientShape() shape {
	s := shape{sends: 2*r.Depth + markDepth, slots: markDepth, sendsData: true}
	if r.Kind == Latency {
		s.whole, s.exposed = r.Op == Send, r.Op == Write
	}
	return s
}

func (r *run) handleEstablished(to place) error {
	r.c.prepareRequests(to)
	r.connected = true
	r.path = pathOf(r.c.ID.Path())
	r.step = "measuring"
	r.begun, r.cpu = time.Now(), stats.CPUTime()
	r.measure = r.WarmUp == 0
	if r.Op == Read {
		r.sendBeat()
	}
	if r.Kind == Latency {
		return r.startTrip()
	}
	return r.fillWindow()
}

// heartbeat is how often a client that only Reads sends a message.
const heartbeat = time.Second

// sendBeat shows the server of a Read test that its client is alive. Such a server sees no other
// completions.
func (r *run) sendBeat() {
	r.c.h.loop.AfterFunc(heartbeat, func() {
		if r.c.ending || r.c.over {
			return
		}
		if err := r.c.postMark(); err != nil {
			r.c.fail(err)
			return
		}
		r.sendBeat()
	})
}

func (r *run) countCompletion(wc *verbs.WC) error {
	if r.Op == Read && wc.Op != verbs.Read || r.Op != Read && wc.Op != verbs.Recv {
		return nil
	}
	if r.Kind == Latency {
		return r.finishTrip()
	}
	n := r.batchSize()
	r.ahead -= n
	if r.countArrived(n) {
		if r.ahead == 0 {
			r.c.hangUp()
		}
		return nil
	}
	return r.fillWindow()
}

// startTrip starts a round trip.
func (r *run) startTrip() error {
	r.posted = time.Now()
	if r.Op == Read {
		return r.c.postMessage(verbs.Signaled)
	}
	return r.c.postHalfTrip()
}

func (r *run) finishTrip() error {
	if r.measure {
		r.times.Add(time.Since(r.posted))
	}
	if r.countArrived(1) {
		r.c.hangUp()
		return nil
	}
	return r.startTrip()
}

// fillWindow posts messages up to the allowed number in flight.
func (r *run) fillWindow() error {
	batch := r.batchSize()
	for ; r.ahead+batch <= r.Depth; r.ahead += batch {
		for i := range batch {
			var flags verbs.SendFlags
			if i == batch-1 {
				flags = verbs.Signaled
			}
			if err := r.c.postMessage(flags); err != nil {
				return err
			}
		}
		if r.Op == Write {
			if err := r.c.postMark(); err != nil {
				return err
			}
		}
	}
	return nil
}

// countArrived counts n messages, and reports whether the test has enough. Later messages are not
// counted.
func (r *run) countArrived(n int) (enough bool) {
	if r.result.Count > 0 {
		return true
	}
	r.n += n
	took := sinceNonZero(r.begun)
	if !r.measure {
		if took >= r.WarmUp {
			r.measure, r.base, r.begun, r.cpu = true, r.n, time.Now(), stats.CPUTime()
		}
		return false
	}
	measured := r.n - r.base
	if r.Count > 0 && measured < r.Count || r.Count == 0 && took < r.Duration {
		return false
	}
	r.result = r.newResult(measured, took, stats.CPUTime()-r.cpu)
	return true
}
