package contest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/lab/measure"
)

const (
	// PayloadSize is the size of a message in bytes, unless a scenario specifies another.
	PayloadSize = 64
	// Loopback is the address that every contestant listens on.
	Loopback = "127.0.0.1:0"
	// ManyCallers is the number of callers where there are several. They share a connection, or
	// have one each.
	ManyCallers = 64
)

// ours are the prefixes of the names of this project's contestants.
var ours = []string{"verbs", "actor", "rpc", "rdmanet", "remoting"}

// Blocking returns entries that wait by blocking in the kernel.
func Blocking(contestants ...string) (list []measure.Entry) {
	for _, name := range contestants {
		mine := slices.ContainsFunc(ours, func(s string) bool { return strings.HasPrefix(name, s) })
		list = append(list, measure.Entry{Contestant: name, Ours: mine})
	}
	return list
}

// Busy returns entries that wait by polling.
func Busy(contestants ...string) []measure.Entry {
	list := Blocking(contestants...)
	for i := range list {
		list[i].Wait = eventloop.Busy
	}
	return list
}

// Contestant is one way to send bytes to a server and back.
type Contestant struct {
	Serve  func(measure.Entry) (measure.Service, error)
	Dial   func(addr string, e measure.Entry) (Calls, error)
	Client func(addr string, e measure.Entry) (measure.Client, error) // instead of Dial: one caller
}

// Contestants by name.
type Contestants map[string]Contestant

// Ours are the contestants of this project, and plain sockets.
var Ours = Contestants{
	"verbs":      {Serve: serveVerbs, Client: dialVerbsEcho},
	"actor":      {Serve: serveActor, Client: dialActor},
	"rdmanet":    {Serve: serveRDMANet, Dial: dialRDMANet},
	"net.Conn":   {Serve: serveEcho, Dial: dialEcho},
	"read/write": {Serve: serveEcho, Dial: dialEcho},
	cryptoTLS:    {Serve: serveEcho, Dial: dialEcho},
	"spinning":   {Serve: serveEcho, Dial: dialEcho},
}

// Serve starts the echo server of the entry's contestant.
func (c Contestants) Serve(e measure.Entry) (measure.Service, error) { return c[e.Contestant].Serve(e) }

// Dial makes a client with one caller, which makes one call after the other.
func (c Contestants) Dial(addr string, e measure.Entry) (measure.Client, error) {
	if dial := c[e.Contestant].Client; dial != nil {
		return dial(addr, e)
	}
	calls, err := c[e.Contestant].Dial(addr, e)
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		return Together(1, PayloadSize, d, true, calls.ignoreCaller)
	}, Close: calls.Close}, err
}

// DialMany makes a client with ManyCallers callers on one connection.
func (c Contestants) DialMany(addr string, e measure.Entry) (measure.Client, error) {
	calls, err := c[e.Contestant].Dial(addr, e)
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		return Together(ManyCallers, PayloadSize, d, true, calls.ignoreCaller)
	}, Close: calls.Close}, err
}

// Calls makes round trips on a connection.
type Calls struct {
	// Call makes one round trip, and blocks its goroutine. It returns the answer without checking
	// it. The answer may use the memory of room, which is as long as the payload.
	Call  func(payload, room []byte) ([]byte, error)
	Close func() error
}

func (c Calls) ignoreCaller(_ int, payload, room []byte) ([]byte, error) {
	return c.Call(payload, room)
}

// Together makes calls from n goroutines, with payloads of size bytes, until d has passed. It
// checks each answer, and records the times if timed. call is given the number of its goroutine.
func Together(
	n, size int, d time.Duration, timed bool, call func(caller int, payload, room []byte) ([]byte, error),
) (measure.Sample, error) {
	var all sync.WaitGroup
	counts, errs := make([]int, n), make([]error, n)
	times := make([]stats.Times, n)
	begun := time.Now()
	for i := range n {
		if timed {
			times[i] = stats.NewTimes(2)
		}
		all.Go(func() {
			payload, room := NewPayload(size), make([]byte, size)
			made := 0 // not in counts, whose cache lines are shared
			defer func() { counts[i] = made }()
			for last := begun; last.Sub(begun) < d; made++ {
				got, err := call(i, payload, room)
				if err == nil {
					err = Echoed(got, payload)
				}
				if err != nil {
					errs[i] = err
					return
				}
				now := time.Now()
				if timed {
					times[i].Add(now.Sub(last))
				}
				last = now
			}
		})
	}
	all.Wait()
	s := measure.Sample{Seconds: time.Since(begun).Seconds()}
	for i := range n {
		s.N += counts[i]
		if timed && i > 0 {
			times[0].Merge(times[i].Histogram)
		}
	}
	if timed {
		s.Times = measure.Percentiles(times[0])
	}
	s.Bytes = s.N * size
	return s, errors.Join(errs...)
}

// Echoed returns an error if got is not want.
func Echoed(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes came back that begin with %.16x, want %d, %.16x", len(got), got, len(want), want)
	}
	return nil
}

// NewPayload makes a payload of n bytes that are not all the same.
func NewPayload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}
