package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
)

// The first byte of a request selects how its handler ends.
const (
	endsWell    = "well"
	endsInError = "error"
	endsLate    = "late" // waits for its context, which has a deadline
	endsInPanic = "panic"
	endsExit    = "goexit"
	endsLarge   = "large" // returns an answer that is too large for the client
)

var endings = []string{endsWell, endsInError, endsLate, endsInPanic, endsExit, endsLarge}

// anyEnd is a stream whose request is one of endings.
var anyEnd = NewStream[wrapperspb.StringValue, wrapperspb.Int64Value]("test.AnyEnd")

// book is the number of calls of a method that one side has counted independently.
type book struct {
	mu     sync.Mutex
	inside int
	ended  map[Code]uint64 // 0: success
}

func (b *book) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside++
}

func (b *book) end(code Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside--
	if b.ended == nil {
		b.ended = make(map[Code]uint64)
	}
	b.ended[code]++
}

// handle handles a call: it ends as requested, and is counted in b.
func (b *book) handle(ctx context.Context, how string, onLoop bool) (reply []byte, err error) {
	b.begin()
	code := CodeInternal
	defer func() { b.end(code) }()
	switch how {
	case endsInError:
		code, err = 1001, errTaken
	case endsInPanic:
		panic("the handler says no")
	case endsExit:
		if onLoop { // it would end the loop
			panic("as the test wants")
		}
		runtime.Goexit()
	case endsLarge:
		code, reply = CodeTooLarge, make([]byte, 100<<10)
	case endsLate:
		if code = 0; !onLoop {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				err = ctx.Err()
				code, _, _ = wireError(err)
			}
		}
	default:
		code = 0
	}
	return reply, err
}

// counted is a server and a client whose calls end in all ways, and independent counts of both.
type counted struct {
	*rig
	rand                *rand.Rand
	there, thereStreams book
	here, hereStreams   book
	callers             sync.WaitGroup
}

// random returns a context that lasts for some time.
func (c *counted) random() (context.Context, context.CancelFunc) {
	d := time.Duration(c.rand.IntN(30)) * time.Millisecond
	switch c.rand.IntN(4) {
	case 0:
		return context.WithTimeout(c.t.Context(), d)
	case 1:
		ctx, cancel := context.WithCancel(c.t.Context())
		stop := time.AfterFunc(d, cancel)
		return ctx, func() { stop.Stop(); cancel() }
	}
	return context.WithCancel(c.t.Context())
}

// call makes a call and notes how it ended.
func (c *counted) call() {
	how := endings[c.rand.IntN(len(endings))]
	q := []byte(how)
	if c.rand.IntN(20) == 0 {
		q = make([]byte, 100<<10)
	}
	ctx, cancel := c.random()
	switch {
	case c.rand.IntN(3) > 0:
		c.here.begin()
		c.callers.Go(func() {
			defer cancel()
			_, err := CallRaw(ctx, c.c, echo, q, nil)
			c.here.end(CodeOf(err))
		})
	default:
		c.hereStreams.begin()
		items := c.rand.IntN(5) // number of items to read
		c.callers.Go(func() {
			defer cancel()
			c.hereStreams.end(CodeOf(c.receive(ctx, how, items)))
		})
	}
}

// receive opens a stream, and reads so many items of it; 0: all.
func (c *counted) receive(ctx context.Context, how string, items int) error {
	in, err := Open(ctx, c.c, anyEnd, wrapperspb.String(how))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	in.r.from.(*clientStream).onEnd(func(err error) { ended <- err })
	for n := 1; err == nil && (n <= items || items == 0); n++ {
		_, err = in.Receive()
	}
	in.Close() // items that were not received are dropped, and with them how the stream ended
	if err = <-ended; errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// check compares a side's counters with the independent counts while nothing is in flight.
func (b *book) check(t *testing.T, side string, i MethodInfo) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	failed := make(map[Code]uint64)
	all := i.OK
	for _, e := range i.Errors {
		failed[e.Code] = e.Calls
		all += e.Calls
	}
	if i.InFlight != b.inside || i.Started != all+uint64(b.inside) || i.Failed != all-i.OK || i.OK != b.ended[0] || i.Waiting != 0 {
		t.Errorf("%s: %d in flight, %d started, %d ok, %d failed, %d waiting; seen %v, and %d are in flight",
			side, i.InFlight, i.Started, i.OK, i.Failed, i.Waiting, b.ended, b.inside)
	}
	if n := i.Latency.Count(); n > 2*all+32 || all > 0 && n == 0 {
		t.Errorf("%s: %d calls were timed, %d have ended", side, n, all)
	}
	refused := i.Refused
	late := uint64(0)
	if side == "server" { // neither refused calls nor those without a handler reach the test
		refused, late = RefusedCalls{}, i.Late
	}
	for _, g := range []struct {
		codes []Code
		more  uint64
		less  uint64
	}{
		{[]Code{CodeOverloaded}, refused.Limit + refused.Memory, 0},
		{[]Code{CodeDraining}, refused.Draining, 0},
		{[]Code{CodeUnavailable, CodeClosed}, refused.Connection, 0},
		{[]Code{CodeTooLarge, CodeBadMessage}, refused.Message, 0},
		{[]Code{CodeCanceled, CodeDeadline}, refused.Context, late},
		{[]Code{CodeInternal}, 0, 0},
		{[]Code{1001}, 0, 0},
		{[]Code{CodeUnknownMethod}, refused.Method, 0},
		{[]Code{CodeUnknown}, 0, 0},
	} {
		counted, seen := g.more, g.less
		for _, code := range g.codes {
			counted, seen = counted+failed[code], seen+b.ended[code]
		}
		if counted != seen {
			t.Errorf("%s: %v were counted %d times, and seen %d times; %v, refused %+v", side, g.codes, counted, seen, i.Errors, i.Refused)
		}
	}
}

// breakUp breaks the connection sometimes. The client makes another one.
func (c *counted) breakUp() {
	if l := c.c.link(); l != nil && c.rand.IntN(4) == 0 {
		c.Disconnect(l.id)
	}
}

// checkAll compares both sides, at a moment at which nothing moves.
func (c *counted) checkAll() {
	c.t.Helper()
	c.Wait()
	info := func(infos []MethodInfo, name string) MethodInfo {
		for _, i := range infos {
			if i.Method == name {
				return i
			}
		}
		return MethodInfo{}
	}
	here, there := c.c.Inspect(), c.s.Inspect()
	c.here.check(c.t, "client", info(here, "test.Echo"))
	c.hereStreams.check(c.t, "client", info(here, "test.AnyEnd"))
	c.there.check(c.t, "server", info(there, "test.Echo"))
	c.thereStreams.check(c.t, "server", info(there, "test.AnyEnd"))
}

// Each side counts the end of every call once, with its code. Whenever the system is idle, every
// call that started has ended or is in flight.
func TestEveryEndIsCountedOnce(t *testing.T) {
	for seed := range uint64(20) {
		for _, onLoop := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, OnLoop %v", seed, onLoop), func(t *testing.T) { countAll(t, seed, onLoop) })
		}
	}
}

func countAll(t *testing.T, seed uint64, onLoop bool) {
	c := &counted{rand: rand.New(rand.NewPCG(seed, 1))}
	cfg := rigConfig{
		server: ServerConfig{MaxCallsInAll: 24, MaxMessage: 64 << 10}, client: ClientConfig{MaxCalls: 32, MaxMessage: 64 << 10},
		world: actortest.Config{Seed: seed, OnPanic: func(eventloop.Panic) {}},
	}
	inWorld(t, cfg, func(s *Server) {
		HandleRaw(s, echo, func(ctx context.Context, q, _ []byte) ([]byte, error) {
			return c.there.handle(ctx, string(q), onLoop)
		}, HandlerConfig{OnLoop: onLoop})
		HandleStream(s, anyEnd, func(ctx context.Context, q *wrapperspb.StringValue, out *Sender[wrapperspb.Int64Value]) error {
			for i := range int64(4) {
				_ = out.Send(wrapperspb.Int64(i))
			}
			how := q.Value
			if how == endsLarge {
				how = endsWell // a stream has no answer
			}
			_, err := c.thereStreams.handle(ctx, how, false)
			return err
		})
	}, func(r *rig) {
		c.rig = r
		for range 10 {
			r.Delay(time.Duration(c.rand.IntN(10)) * time.Millisecond)
			for range c.rand.IntN(60) {
				c.call()
			}
			r.Advance(time.Duration(c.rand.IntN(15)) * time.Millisecond)
			c.breakUp()
			c.checkAll()
		}
		switch c.rand.IntN(3) {
		case 0:
			_ = r.s.Shutdown(r.within(10 * time.Millisecond))
		case 1:
			r.s.Close()
		default:
			r.c.Close()
		}
		c.checkAll()
		for range 5 { // without a connection
			c.call()
		}
		c.callers.Wait()
		r.Advance(time.Minute)
		c.checkAll()
	})
}
