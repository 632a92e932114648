package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/rpc"
)

// load configures the load generator. Callers, each with one call at a time, read and write random
// keys over some connections.
type load struct {
	callers, connections int
	keys, size           int
	reads                int // percent
	duration             time.Duration
}

func (l load) check() error {
	for name, n := range map[string]int{"callers": l.callers, "connections": l.connections, "keys": l.keys} {
		if n < 1 {
			return fmt.Errorf("--%s must be at least 1", name)
		}
	}
	switch {
	case l.size < 0 || l.size > maxValue:
		return fmt.Errorf("--size must be from 0 to %d", maxValue)
	case l.reads < 0 || l.reads > 100:
		return errors.New("--reads is a percentage")
	case l.duration <= 0:
		return errors.New("--duration must be positive")
	}
	return nil
}

// tally counts the outcomes of the callers' calls.
type tally struct {
	sync.Mutex
	took    *hdrhistogram.Histogram // nanoseconds
	refused int64                   // rpc.ErrOverloaded
}

// run loads the server at addr and prints the results, also if ctx ends first.
func (l load) run(ctx context.Context, rt *rdma.Runtime, addr string, out io.Writer) error {
	clients := make([]*rpc.Client, l.connections)
	for i := range clients {
		c, err := rpc.Dial(ctx, rt, addr, rpc.ClientConfig{Timeout: callFor, MaxMessage: maxMessage, Credits: 32})
		if err != nil {
			return err
		}
		defer c.Close()
		clients[i] = c
	}
	if err := l.fill(ctx, kv.NewStoreClient(clients[0])); err != nil {
		return err
	}
	t := tally{took: newHistogram()}
	callers, until := errgroup.WithContext(ctx)
	begin := time.Now()
	for i := range l.callers {
		callers.Go(func() error {
			return l.call(until, begin.Add(l.duration), kv.NewStoreClient(clients[i%len(clients)]), &t)
		})
	}
	err := callers.Wait()
	took := time.Since(begin)
	if ctx.Err() != nil && t.took.TotalCount() > 0 {
		err = nil // Ctrl-C: print the measurements so far
	}
	if err != nil {
		return err
	}
	at := func(q float64) time.Duration { return time.Duration(t.took.ValueAtQuantile(q)) }
	fmt.Fprintf(out, "%d calls in %.1f s: %.0f/s; p50 %v, p90 %v, p99 %v, p99.9 %v, longest %v; %d refused\n",
		t.took.TotalCount(), took.Seconds(), float64(t.took.TotalCount())/took.Seconds(),
		at(50), at(90), at(99), at(99.9), time.Duration(t.took.Max()), t.refused)
	return nil
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(callFor), 3)
}

// fill creates the keys.
func (l load) fill(ctx context.Context, c kv.StoreAPI) error {
	value := make([]byte, l.size)
	for i := range l.keys {
		if _, err := c.Put(ctx, &kv.Entry{Key: l.key(i), Value: value}); err != nil {
			return err
		}
	}
	return nil
}

func (l load) key(i int) string { return fmt.Sprintf("load/%06d", i) }

// call is one caller. Its last call starts before end.
func (l load) call(ctx context.Context, end time.Time, c kv.StoreAPI, t *tally) error {
	mine := newHistogram()
	var refused int64
	defer func() {
		t.Lock()
		defer t.Unlock()
		t.took.Merge(mine)
		t.refused += refused
	}()
	value := make([]byte, l.size)
	for begin := time.Now(); begin.Before(end); begin = time.Now() {
		key := l.key(rand.IntN(l.keys))
		var err error
		if rand.IntN(100) < l.reads {
			_, err = c.Get(ctx, &kv.KeyRequest{Key: key})
		} else {
			_, err = c.Put(ctx, &kv.Entry{Key: key, Value: value})
		}
		switch {
		case errors.Is(err, rpc.ErrOverloaded):
			refused++
		case err != nil:
			return err
		default:
			if err := mine.RecordValue(int64(time.Since(begin))); err != nil {
				return err
			}
		}
	}
	return nil
}
