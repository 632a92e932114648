package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tried is an interceptor of net/http's or gRPC's users, under load. number is that of the call's
// request.
type tried struct {
	around Interceptor
	panics bool                      // every fifth handler
	fails  func(number uint32) error // the error that a call ends with; nil: none
}

func numberOf(call *Info) uint32 { return binary.BigEndian.Uint32(call.Request.([]byte)) }

// every returns err for every nth number, as tried.fails.
func every(n uint32, err error) func(uint32) error {
	return func(number uint32) error {
		if number%n == 0 {
			return err
		}
		return nil
	}
}

const (
	perTry   = 30 * time.Millisecond
	slowness = 20 * time.Millisecond // the first handler of request n takes n%4 of it
)

var underLoad = map[string]tried{
	// net/http's TimeoutHandler
	"time-out": {around: giveUpAfter(perTry, nil), fails: func(number uint32) error {
		if number%4*uint32(slowness) > uint32(perTry) {
			return context.DeadlineExceeded
		}
		return nil
	}},
	// go-grpc-middleware's retry: a time-out for each attempt, and a backoff
	"retry": {around: func(ctx context.Context, _ *Info, next func(context.Context) error) (err error) {
		for attempt := range 4 {
			one, cancel := context.WithTimeout(ctx, perTry)
			err = next(one)
			cancel()
			if err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond << attempt)
		}
		return err
	}},
	// gRPC's hedgingPolicy: the first answer wins, and the other attempt is cancelled
	"hedge": {around: hedged(context.WithCancel)},
	// the same without cancelling the other attempt
	"hedge that goes on": {around: hedged(func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithoutCancel(ctx), func() {}
	})},
	"recover": {panics: true, fails: every(5, errTaken), around: func(ctx context.Context, _ *Info, next func(context.Context) error) (err error) {
		defer func() {
			if recover() != nil {
				err = errTaken
			}
		}()
		return next(ctx)
	}},
	"never next": {fails: every(3, errTaken), around: func(ctx context.Context, call *Info, next func(context.Context) error) error {
		switch numberOf(call) % 3 {
		case 0:
			return errTaken
		case 1:
			call.Reply = answerTo(call.Request.([]byte)) // from a cache
			return nil
		}
		return next(ctx)
	}},
	"next afterwards": {fails: every(2, errTaken), around: func(ctx context.Context, call *Info, next func(context.Context) error) error {
		if numberOf(call)%2 != 0 {
			return next(ctx)
		}
		go func() {
			time.Sleep(slowness)
			if next(context.WithoutCancel(ctx)) == nil {
				panic("next succeeds when its interceptor has returned")
			}
		}()
		return errTaken
	}},
}

// hedged begins a second attempt when the first has no answer for a while.
func hedged(within func(context.Context) (context.Context, context.CancelFunc)) Interceptor {
	return func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		ctx, cancel := within(ctx)
		defer cancel()
		errs := make(chan error, 2)
		attempt := func() { errs <- next(ctx) }
		go attempt()
		select {
		case err := <-errs:
			return err
		case <-time.After(slowness / 2):
		}
		go attempt()
		if err := <-errs; err == nil {
			return nil
		}
		return <-errs
	}
}

// requestOf makes a request that differs from all others in all parts.
func requestOf(number uint32) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint32(nil, number), 5+int(number%64)*8)
}

// answerTo returns the answer to a request, of up to 20 KiB.
func answerTo(q []byte) []byte {
	return bytes.Repeat(append([]byte("to "), q...), 1+int(q[3])%10)
}

// With each pattern, at either side, with many concurrent calls: each caller gets the answer to its
// own request and no other, its buffer is not written after CallRaw returns, and its request
// belongs to it again. Handlers keep the request of their call until they return, even if they were
// abandoned.
func TestEachCallerGetsItsOwnAnswer(t *testing.T) {
	for name, p := range underLoad {
		for side, cfg := range map[string]rigConfig{
			"client": {client: ClientConfig{Interceptors: []Interceptor{p.around}}},
			"server": {server: ServerConfig{Interceptors: []Interceptor{p.around}}},
		} {
			if p.panics && side == "client" {
				continue // a server does not report panics to its clients
			}
			t.Run(name+"/"+side, func(t *testing.T) { p.underLoad(t, cfg) })
		}
	}
}

func (p *tried) underLoad(t *testing.T, cfg rigConfig) {
	const clients, callers, calls = 3, 6, 6
	var before sync.Map // has the requests that a handler has had
	var running atomic.Int64
	inWorld(t, cfg, func(s *Server) {
		HandleRaw(s, slow, func(_ context.Context, q, reply []byte) ([]byte, error) {
			running.Add(1)
			defer running.Add(-1)
			number := binary.BigEndian.Uint32(q)
			reply = append(reply, answerTo(q)...)
			if _, again := before.LoadOrStore(number, true); !again {
				time.Sleep(time.Duration(number%4) * slowness)
			}
			if !bytes.Equal(q, requestOf(number)) || !bytes.Equal(reply, answerTo(q)) {
				t.Errorf("the request or the answer of call %d has changed under its handler", number)
			}
			if p.panics && number%5 == 0 {
				panic("planned")
			}
			return reply, nil
		})
	}, func(r *rig) {
		type kept struct{ buffer, was []byte }
		var mu sync.Mutex
		var all []kept
		var wg sync.WaitGroup
		for i := range clients {
			c := r.dial(cfg.client)
			defer c.Close()
			for j := range callers {
				wg.Go(func() {
					for k := range calls {
						number := uint32((i*callers+j)*calls + k + 1)
						q, buffer := requestOf(number), bytes.Repeat([]byte{'.'}, 32<<10)
						reply, err := CallRaw(r.t.Context(), c, slow, q, append(buffer[:0], "> "...))
						if was := p.wrong(number, reply, err); was != "" {
							r.t.Errorf("call %d: %s", number, was)
						}
						for at := range q {
							q[at] = 'X'
						}
						mu.Lock()
						all = append(all, kept{buffer, bytes.Clone(buffer)})
						mu.Unlock()
					}
				})
			}
		}
		wg.Wait()
		for running.Load() > 0 {
			r.Advance(slowness)
		}
		r.Advance(time.Second)
		for _, k := range all {
			if !bytes.Equal(k.buffer, k.was) {
				r.t.Error("a buffer was written when CallRaw had returned")
			}
		}
		r.nothingKept()
	})
}

// wrong describes an unexpected end of a call.
func (p *tried) wrong(number uint32, reply []byte, err error) string {
	var want error
	if p.fails != nil {
		want = p.fails(number)
	}
	switch expected := append([]byte("> "), answerTo(requestOf(number))...); {
	case want == nil && err != nil, want != nil && !errors.Is(err, want) && (!errors.Is(want, context.DeadlineExceeded) || !errors.Is(err, ErrDeadline)):
		return fmt.Sprintf("the error is %v, want %v", err, want)
	case want == nil && !bytes.Equal(reply, expected):
		return fmt.Sprintf("the answer is %d bytes, %.20q, want %d, %.20q", len(reply), reply, len(expected), expected)
	case want != nil && string(reply) != "> ":
		return fmt.Sprintf("with an error the answer is %.20q", reply)
	}
	return ""
}
