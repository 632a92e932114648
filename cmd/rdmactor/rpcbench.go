package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
)

// benchMethod runs the command bench.
func benchMethod(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseRPC("bench", benchUsage, args, stdout)
	if err != nil {
		return err
	}
	return o.withClient(ctx, stderr, func(rt *rdma.Runtime, first *rpc.Client) error {
		m, err := o.findMethod(ctx, first)
		if err != nil {
			return err
		}
		if m.IsStreamingClient() || m.IsStreamingServer() {
			return fmt.Errorf("%s is a stream: bench calls unary methods", o.method)
		}
		d := described{m: m, in: json.NewDecoder(strings.NewReader(o.request))}
		request, err := d.readUnary()
		if err != nil {
			return err
		}
		clients := []*rpc.Client{first}
		for len(clients) < o.connections {
			dialling, cancel := context.WithTimeout(ctx, o.timeout)
			c, err := o.dialServer(dialling, rt)
			cancel()
			if err != nil {
				return err
			}
			defer c.Close()
			clients = append(clients, c)
		}
		b := bench{o: &o, request: request, method: rpc.NewMethod[rpc.Bytes, rpc.Bytes](nameOf(m))}
		b.runCalls(ctx, clients)
		b.printResults(stdout)
		return nil
	})
}

// bench makes calls at a rate.
type bench struct {
	o       *rpcFlags
	method  rpc.Method[rpc.Bytes, rpc.Bytes]
	request *rpc.Bytes
	elapsed time.Duration

	mu     sync.Mutex
	took   []time.Duration // of answered calls
	failed map[string]int  // by code
}

// runCalls begins calls whenever they are due, until the duration or ctx is over, and waits for
// them.
func (b *bench) runCalls(ctx context.Context, clients []*rpc.Client) {
	b.failed = make(map[string]int)
	begin := time.Now()
	var calls sync.WaitGroup
	for i := 0; ctx.Err() == nil; i++ {
		due := begin.Add(time.Duration(float64(i) / b.o.rate * float64(time.Second)))
		if due.Sub(begin) >= b.o.duration {
			break
		}
		if wait := time.Until(due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
		calls.Go(func() { b.makeCall(ctx, clients[i%len(clients)], due) })
	}
	calls.Wait()
	b.elapsed = time.Since(begin)
}

// makeCall makes a call, and counts the time since it was due.
func (b *bench) makeCall(ctx context.Context, c *rpc.Client, due time.Time) {
	ctx, cancel := context.WithDeadline(b.o.metadataContext(ctx), due.Add(b.o.timeout))
	defer cancel()
	_, err := rpc.Call(ctx, c, b.method, b.request)
	d := time.Since(due)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.took = append(b.took, d)
		return
	}
	text := err.Error()
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		text = fmt.Sprintf("%v, %v", e.Code, e.Fate)
	}
	b.failed[text]++
}

// printResults prints rates, percentiles and errors.
func (b *bench) printResults(w io.Writer) {
	slices.Sort(b.took)
	fmt.Fprintf(w, "%d answered, %.0f a second\n", len(b.took), float64(len(b.took))/b.elapsed.Seconds())
	for _, p := range []float64{50, 90, 99, 99.9, 100} {
		if n := len(b.took); n > 0 {
			fmt.Fprintf(w, "%7.1f %%  %v\n", p, b.took[min(int(p/100*float64(n)), n-1)].Round(time.Microsecond))
		}
	}
	for _, text := range slices.Sorted(maps.Keys(b.failed)) {
		fmt.Fprintf(w, "%d failed: %s\n", b.failed[text], text)
	}
}
