package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/perf"
)

// entry is a contestant in a scenario.
type entry struct {
	contestant string
	wait       eventloop.WaitMode // ours only: everybody else blocks
}

// name is of the entry in tables: "rpc", "rpc busy".
func (e entry) name() string {
	switch e.wait {
	case eventloop.Busy:
		return e.contestant + " busy"
	case eventloop.Spin:
		return e.contestant + " spin"
	default:
		return e.contestant
	}
}

func (e entry) ours() bool { return ours[e.contestant] }

// service is a server that runs.
type service interface {
	Addr() string
	Close() error
}

// client is one that has connected. Its methods are for one goroutine.
type client interface {
	// Run measures for d.
	Run(d time.Duration) (sample, error)
	Close() error
}

// contestant is a way to send bytes there and back.
type contestant struct {
	what  string // exactly
	serve func(entry) (service, error)
	dial  func(addr string, e entry) (tripper, error)
}

// tripper makes round trips.
type tripper interface {
	// Trips makes round trips with payload, one after the other, until d has passed, checks what comes back, and records how long each
	// took. It says how many they were.
	Trips(payload []byte, d time.Duration, h *hdrhistogram.Histogram) (int, error)
	Close() error
}

// caller is a tripper whose round trips block their goroutine, and overlap.
type caller interface {
	tripper
	// Call makes one round trip. room, which is as long as the payload, may hold the answer. Any goroutine.
	Call(payload, room []byte) error
}

const payloadSize = 64

// warmUp is how long a client runs before it is measured.
const warmUp = 300 * time.Millisecond

// contestants by name.
var contestants = map[string]contestant{
	"net.Conn":    {"package net: TCP, 64 bytes written and read; no framing, one call at a time", serveNet, dialNet},
	"net/rpc":     {"package net/rpc: gob, []byte", serveNetRPC, dialNetRPC},
	"grpc-go":     {"grpc-go: unary, a codec that passes bytes on (no protobuf), no TLS, no retries, stream workers", serveGRPC, dialGRPC},
	"proto.actor": {"Proto.Actor's remote: RequestFuture of a wrapperspb.BytesValue, answered by an actor", serveProto, dialProto},
	"netpoll":     {"cloudwego/netpoll: 64 bytes written and read; no framing, one call at a time", serveNetpoll, dialNetpoll},
	"actor":       {"ours, an actor answers an actor, each on its loop", serveActor, dialActor},
	"rpc":         {"ours, package rpc: CallRaw, bytes; the handler has a goroutine, as with the others", serveRPC, dialRPC},
	"rpc-onloop":  {"ours, package rpc: CallRaw, bytes; the handler runs on the loop (rpc.OnLoop)", serveRPCOnLoop, dialRPC},
	"rdmanet":     {"ours, package rdmanet: a net.Conn; no framing, one call at a time", serveRDMANet, dialRDMANet},
}

// ours are those of this project.
var ours = map[string]bool{"verbs": true, ownMemory: true, "actor": true, "rpc": true, "rpc-onloop": true, "rdmanet": true}

func serveEcho(e entry) (service, error) {
	if e.contestant == "verbs" {
		return serveVerbs(e)
	}
	return contestants[e.contestant].serve(e)
}

// echoed checks an answer.
func echoed(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes came back that begin with %.16x, want %d, %.16x", len(got), got, len(want), want)
	}
	return nil
}

func newPayload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

// blocking makes a caller of one function. Where calls do not overlap it is a tripper only.
type blocking struct {
	call  func(payload, room []byte) error
	close func() error
}

func (b blocking) Call(p, room []byte) error { return b.call(p, room) }
func (b blocking) Close() error              { return b.close() }

// Trips calls until d has passed.
func (b blocking) Trips(p []byte, d time.Duration, h *hdrhistogram.Histogram) (n int, err error) {
	room := make([]byte, len(p))
	begun := time.Now()
	for last := begun; last.Sub(begun) < d; n++ {
		if err := b.call(p, room); err != nil {
			return n, err
		}
		now := time.Now()
		record(h, now.Sub(last))
		last = now
	}
	return n, nil
}

// tripClient is one caller.
type tripClient struct{ tripper }

func dialTrips(addr string, e entry) (client, error) {
	if e.contestant == "verbs" {
		return dialVerbs(addr, e, perf.Test{Op: perf.Send, Kind: perf.Latency, Size: payloadSize, Depth: 1})
	}
	t, err := contestants[e.contestant].dial(addr, e)
	return tripClient{t}, err
}

func (c tripClient) Run(d time.Duration) (sample, error) {
	h := newHistogram()
	begun := time.Now()
	n, err := c.Trips(newPayload(payloadSize), d, h)
	return sample{N: n, Seconds: time.Since(begun).Seconds(), Bytes: n * payloadSize, Times: percentiles(h)}, err
}

// callClient is many callers on one connection.
type callClient struct{ caller }

const manyCallers = 64

func dialCalls(addr string, e entry) (client, error) {
	t, err := contestants[e.contestant].dial(addr, e)
	if err != nil {
		return nil, err
	}
	c, ok := t.(caller)
	if !ok {
		return nil, fmt.Errorf("%s takes one call at a time", e.contestant)
	}
	return callClient{c}, nil
}

func (c callClient) Run(d time.Duration) (sample, error) { return together(manyCallers, d, c.Call) }
