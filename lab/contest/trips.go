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
func Blocking(contestants ...string) []measure.Entry { return newEntries(eventloop.Block, contestants) }

// Busy returns entries that wait by polling.
func Busy(contestants ...string) []measure.Entry { return newEntries(eventloop.Busy, contestants) }

func newEntries(wait eventloop.WaitMode, contestants []string) (list []measure.Entry) {
	for _, name := range contestants {
		mine := slices.ContainsFunc(ours, func(s string) bool { return strings.HasPrefix(name, s) })
		list = append(list, measure.Entry{Contestant: name, Ours: mine, Wait: wait})
	}
	return list
}

// Tripper makes round trips.
type Tripper interface {
	// Trips makes round trips with payload, one after the other, until d has passed. It checks each
	// answer, records each duration in times, and returns the number of round trips.
	Trips(payload []byte, d time.Duration, times stats.Times) (int, error)
	Close() error
}

// Caller is a Tripper that can also make a single round trip. The call blocks its goroutine.
// Several calls may overlap.
type Caller interface {
	Tripper
	// Call makes one round trip and returns the answer without checking it. The answer may use the
	// memory of room, which is as long as the payload. Any goroutine may call it.
	Call(payload, room []byte) ([]byte, error)
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

// Calls makes a Caller from functions. Wrap it in Serial if calls cannot overlap.
type Calls struct {
	CallFunc  func(payload, room []byte) ([]byte, error)
	CloseFunc func() error
}

// Serial hides the Call of a Caller.
type Serial struct{ Tripper }

// Call implements Caller.
func (c Calls) Call(p, room []byte) ([]byte, error) { return c.CallFunc(p, room) }

// Close implements Tripper.
func (c Calls) Close() error { return c.CloseFunc() }

// Trips implements Tripper.
func (c Calls) Trips(p []byte, d time.Duration, times stats.Times) (n int, err error) {
	room := make([]byte, len(p))
	begun := time.Now()
	for last := begun; last.Sub(begun) < d; n++ {
		got, err := c.CallFunc(p, room)
		if err == nil {
			err = Echoed(got, p)
		}
		if err != nil {
			return n, err
		}
		now := time.Now()
		times.Add(now.Sub(last))
		last = now
	}
	return n, nil
}

// oneCaller makes a client that measures t.
func oneCaller(t Tripper) measure.Client {
	return measure.NewClient(func(d time.Duration) (measure.Sample, error) {
		times := stats.NewTimes(2)
		begun := time.Now()
		n, err := t.Trips(NewPayload(PayloadSize), d, times)
		return measure.Sample{
			N: n, Seconds: time.Since(begun).Seconds(), Bytes: n * PayloadSize, Times: measure.Percentiles(times),
		}, err
	}, t.Close)
}

// manyCallers makes a client with ManyCallers callers that share c.
func manyCallers(c Caller) measure.Client {
	return measure.NewClient(func(d time.Duration) (measure.Sample, error) {
		return Together(ManyCallers, PayloadSize, d, c.Call)
	}, c.Close)
}

// Together makes calls from n goroutines, with payloads of size bytes, until d has passed.
func Together(n, size int, d time.Duration, call func(payload, room []byte) ([]byte, error)) (measure.Sample, error) {
	var all sync.WaitGroup
	counts, errs := make([]int, n), make([]error, n)
	times := make([]stats.Times, n)
	begun := time.Now()
	for i := range n {
		times[i] = stats.NewTimes(2)
		all.Go(func() {
			counts[i], errs[i] = Calls{CallFunc: call}.Trips(NewPayload(size), d, times[i])
		})
	}
	all.Wait()
	took, sum := time.Since(begun), 0
	for i := range n {
		sum += counts[i]
		if i > 0 {
			times[0].Merge(times[i].Histogram)
		}
	}
	return measure.Sample{
		N: sum, Seconds: took.Seconds(), Bytes: sum * size, Times: measure.Percentiles(times[0]),
	}, errors.Join(errs...)
}
