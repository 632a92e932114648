package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Many connections, of which a quarter sends a message each second.
const (
	manyConns   = 20_000
	quickConns  = 200
	spareFiles  = 200 // file descriptors that a process needs besides
	dialsAtOnce = 64
	talking     = 4 // one connection in so many
)

// howMany is what the limit of open files allows.
func howMany() int {
	if quick {
		return quickConns
	}
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return quickConns
	}
	return int(min(manyConns, lim.Cur-spareFiles))
}

func serveMany(e entry) (service, error) {
	if e.contestant == "net.Conn" {
		return listenTCP(echoConn)
	}
	return serveActor(e)
}

func dialMany(addr string, e entry) (client, error) {
	if e.contestant == "net.Conn" {
		return dialManyConns(addr)
	}
	return dialManyActors(addr, e)
}

// stamped is a message that says when it was sent.
func stamped(p []byte) []byte {
	binary.BigEndian.PutUint64(p, uint64(time.Now().UnixNano()))
	return p
}

func age(p []byte) time.Duration {
	return time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(p))))
}

// talk has each of n connections send once a second, evenly, for d.
func talk(n int, d time.Duration, send func(i int, p []byte) error) (sent int, err error) {
	p := newPayload(payloadSize)
	begun := time.Now()
	const pause = 5 * time.Millisecond
	for now := begun; now.Sub(begun) < d; now = time.Now() {
		for due := int(now.Sub(begun).Seconds() * float64(n)); sent < due; sent++ {
			if err := send(sent%n, stamped(p)); err != nil {
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
	h    *hdrhistogram.Histogram
	n    int
	some chan struct{} // something has come
}

func newTally() *tally { return &tally{h: newHistogram(), some: make(chan struct{}, 1)} }

func (t *tally) add(p []byte) {
	t.mu.Lock()
	record(t.h, age(p))
	t.n++
	t.mu.Unlock()
	select {
	case t.some <- struct{}{}:
	default:
	}
}

// wait waits for n answers, and forgets them.
func (t *tally) wait(n int) (map[string]float64, error) {
	const patience = 10 * time.Second
	late := time.After(patience)
	for {
		t.mu.Lock()
		got := t.n
		times := percentiles(t.h)
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

// measureMany is a Run over n connections.
func measureMany(n int, d time.Duration, t *tally, send func(int, []byte) error) (sample, error) {
	begun := time.Now()
	sent, err := talk(n/talking, d, send)
	if err != nil {
		return sample{}, err
	}
	times, err := t.wait(sent)
	return sample{
		N: sent, Seconds: time.Since(begun).Seconds(), Bytes: sent * payloadSize, Times: times,
		More: map[string]float64{connections: float64(n)},
	}, err
}

// actorsClient is one actor with all the connections.
type actorsClient struct {
	world
	pids  []*actor.PID
	tally *tally
}

func dialManyActors(addr string, e entry) (client, error) {
	w, err := openWorld(e)
	if err != nil {
		return nil, err
	}
	n := howMany()
	c := &actorsClient{world: w, tally: newTally()}
	all := make(chan error, 1)
	dialled := 0
	w.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		dial := func() {
			if dialled < n {
				dialled++
				ctx.Request(w.rt.CreateID(ctx.Self()), &rdma.Dial{Addr: addr})
			}
		}
		switch m := ctx.Message().(type) {
		case *actor.Started:
			for range dialsAtOnce {
				dial()
			}
		case *rdma.Established:
			c.pids = append(c.pids, ctx.Sender())
			dial()
			if len(c.pids) == n {
				all <- nil
			}
		case *rdma.Received:
			c.tally.add(m.Data)
		case rdma.Failure:
			select {
			case all <- m:
			default:
			}
		}
	}, w.rt.OnLoop()))
	return c, <-all
}

func (c *actorsClient) Run(d time.Duration) (sample, error) {
	return measureMany(len(c.pids), d, c.tally, func(i int, p []byte) error {
		c.system.Root.Send(c.pids[i], rdma.NewSend(p))
		return nil
	})
}

// connsClient has a goroutine for each connection that talks, and none for the others.
type connsClient struct {
	conns []net.Conn
	tally *tally
	done  sync.WaitGroup
}

func dialManyConns(addr string) (client, error) {
	n := howMany()
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
			for b := make([]byte, payloadSize); ; {
				if _, err := io.ReadFull(conn, b); err != nil {
					return
				}
				c.tally.add(b)
			}
		})
	}
	return c, nil
}

func (c *connsClient) Run(d time.Duration) (sample, error) {
	return measureMany(len(c.conns), d, c.tally, func(i int, p []byte) error {
		_, err := c.conns[i].Write(p)
		return err
	})
}

func (c *connsClient) Close() error {
	var errs []error
	for _, conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0) // no TIME_WAIT: the ports are for the next ones
		errs = append(errs, conn.Close())
	}
	c.done.Wait()
	return errors.Join(errs...)
}
