package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// There are many connections. One in four sends a message each second.
const (
	manyConns   = 20_000
	quickConns  = 200
	spareFiles  = 200 // file descriptors that a process needs for other things
	dialsAtOnce = 64
	talking     = 4 // share of connections that send: one in talking
)

// howMany returns manyConns, or less if the limit of open files does not allow so many.
func howMany(e measure.Entry) int {
	if e.Quick {
		return quickConns
	}
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return quickConns
	}
	return int(min(manyConns, lim.Cur-spareFiles))
}

func serveMany(e measure.Entry) (measure.Service, error) {
	if e.Contestant == "net.Conn" {
		return contest.ListenTCP(contest.Echo)
	}
	return contest.Ours.Serve(e)
}

func dialMany(addr string, e measure.Entry) (measure.Client, error) {
	if e.Contestant == "net.Conn" {
		return dialManyConns(addr, e)
	}
	return dialManyActors(addr, e)
}

// stampTime writes the current time into a message.
func stampTime(p []byte) []byte {
	binary.BigEndian.PutUint64(p, uint64(time.Now().UnixNano()))
	return p
}

func ageOf(p []byte) time.Duration {
	return time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(p))))
}

// sendEachSecond makes each of n connections send once a second for d, evenly distributed over the
// second.
func sendEachSecond(n int, d time.Duration, send func(i int, p []byte) error) (sent int, err error) {
	p := contest.NewPayload(contest.PayloadSize)
	begun := time.Now()
	const pause = 5 * time.Millisecond
	for now := begun; now.Sub(begun) < d; now = time.Now() {
		for due := int(now.Sub(begun).Seconds() * float64(n)); sent < due; sent++ {
			if err := send(sent%n, stampTime(p)); err != nil {
				return sent, err
			}
		}
		time.Sleep(pause)
	}
	return sent, nil
}

// tally counts answers and their times.
type tally struct {
	mu   sync.Mutex
	h    stats.Times
	n    int
	some chan struct{} // signals an arrival
}

func newTally() *tally { return &tally{h: stats.NewTimes(2), some: make(chan struct{}, 1)} }

func (t *tally) add(p []byte) {
	t.mu.Lock()
	t.h.Add(ageOf(p))
	t.n++
	t.mu.Unlock()
	select {
	case t.some <- struct{}{}:
	default:
	}
}

// awaitAnswers waits for n answers, and removes them from the tally.
func (t *tally) awaitAnswers(n int) (measure.Metrics, error) {
	const patience = 10 * time.Second
	late := time.After(patience)
	for {
		t.mu.Lock()
		got := t.n
		times := measure.Percentiles(t.h)
		if got >= n {
			t.n = 0
			t.h.Reset()
			t.mu.Unlock()
			return times, nil
		}
		t.mu.Unlock()
		select {
		case <-t.some:
		case <-late:
			return nil, fmt.Errorf("%d answers to %d messages", got, n)
		}
	}
}

// measureMany measures n connections.
func measureMany(n int, d time.Duration, t *tally, send func(int, []byte) error) (measure.Sample, error) {
	begun := time.Now()
	sent, err := sendEachSecond(n/talking, d, send)
	if err != nil {
		return measure.Sample{}, err
	}
	times, err := t.awaitAnswers(sent)
	return measure.Sample{
		N: sent, Seconds: time.Since(begun).Seconds(), Bytes: sent * contest.PayloadSize, Times: times,
		More: measure.Metrics{measure.Connections: float64(n)},
	}, err
}

// actorsClient is one actor with all the connections.
type actorsClient struct {
	*contest.Crowd
	tally *tally
}

func dialManyActors(addr string, e measure.Entry) (measure.Client, error) {
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return nil, err
	}
	t := newTally()
	c, err := w.DialCrowd(addr, howMany(e), func(m *rdma.Received) { t.add(m.Data) })
	return actorsClient{c, t}, err
}

func (c actorsClient) Run(d time.Duration) (measure.Sample, error) {
	return measureMany(len(c.Conns), d, c.tally, func(i int, p []byte) error {
		c.System.Root.Send(c.Conns[i], rdma.NewSend(p))
		return nil
	})
}

// connsClient has a goroutine for each connection that sends, and none for the others.
type connsClient struct {
	conns []net.Conn
	tally *tally
	done  sync.WaitGroup
}

func dialManyConns(addr string, e measure.Entry) (measure.Client, error) {
	n := howMany(e)
	c := &connsClient{conns: make([]net.Conn, n), tally: newTally()}
	errs := make(chan error, dialsAtOnce)
	for k := range dialsAtOnce {
		go func() {
			var err error
			for i := k; i < n && err == nil; i += dialsAtOnce {
				c.conns[i], err = net.Dial("tcp", addr)
			}
			errs <- err
		}()
	}
	var err error
	for range dialsAtOnce {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return nil, err
	}
	for _, conn := range c.conns[:n/talking] {
		c.done.Go(func() {
			for b := make([]byte, contest.PayloadSize); ; {
				if _, err := io.ReadFull(conn, b); err != nil {
					return
				}
				c.tally.add(b)
			}
		})
	}
	return c, nil
}

func (c *connsClient) Run(d time.Duration) (measure.Sample, error) {
	return measureMany(len(c.conns), d, c.tally, func(i int, p []byte) error {
		_, err := c.conns[i].Write(p)
		return err
	})
}

func (c *connsClient) Close() error {
	var errs []error
	for _, conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0) // no TIME_WAIT: the ports are needed again
		errs = append(errs, conn.Close())
	}
	c.done.Wait()
	return errors.Join(errs...)
}
