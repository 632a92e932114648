package network_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/internal/sim/network"
	"github.com/rdmactor/rdmactor/internal/sockets"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/verbs"
)

// poller is the epoll of a process, for a loop that the test's goroutine turns. Before it reports
// ready descriptors it runs all events that are due.
type poller struct {
	net     *network.Network
	p       *network.Process
	rng     *rand.Rand
	watched []watch
}

type watch struct {
	fd   int
	file uint64
	ev   eventloop.Events
	tag  uint64
}

func (q *poller) find(fd int) int {
	for i, w := range q.watched {
		if w.fd == fd && w.file == q.p.File(fd) {
			return i
		}
	}
	return -1
}

func (q *poller) Add(fd int, ev eventloop.Events, tag uint64) error {
	switch {
	case q.p.File(fd) == 0:
		return unix.EBADF
	case q.find(fd) >= 0:
		return unix.EEXIST
	}
	q.watched = append(q.watched, watch{fd, q.p.File(fd), ev, tag})
	return nil
}

func (q *poller) Modify(fd int, ev eventloop.Events, tag uint64) error {
	i := q.find(fd)
	if i < 0 {
		return unix.ENOENT
	}
	q.watched[i].ev, q.watched[i].tag = ev, tag
	return nil
}

func (q *poller) Remove(fd int) error {
	i := q.find(fd)
	if i < 0 {
		return unix.ENOENT
	}
	q.watched = append(q.watched[:i], q.watched[i+1:]...)
	return nil
}

func (q *poller) Wait(dst []eventloop.Ready, _ time.Duration) (n int, err error) {
	for due := q.net.Due(time.Now()); due > 0; due = q.net.Due(time.Now()) {
		q.net.Step(q.rng.IntN(due))
	}
	for _, w := range q.watched {
		if ev := q.p.Ready(w.fd) & (w.ev | eventloop.Hangup | eventloop.Error); ev != 0 && n < len(dst) && q.p.File(w.fd) == w.file {
			dst[n] = eventloop.Ready{Tag: w.tag, Events: ev}
			n++
		}
	}
	return n, nil
}

func (*poller) Wake() error  { return nil }
func (*poller) Close() error { return nil }

// devices makes a device on each of two machines. Poller is called for the active one first.
func devices(seed uint64, cfg network.Config) (sides.Config, *network.Network) {
	rng := rand.New(rand.NewPCG(seed, 4))
	cfg.Now, cfg.Rand = time.Now, rng
	net := network.New(cfg)
	var procs []*network.Process
	driver := func(name, addr string) *iwarp.Driver {
		p := net.Machine(name, netip.MustParsePrefix(addr)).Process(network.Limits{})
		procs = append(procs, p)
		return iwarp.Config{Device: name}.NewOn(func() sockets.Stack { return p.Stack() })
	}
	next := 0
	return sides.Config{
		Active: driver("a", "10.0.0.1/24"), Passive: driver("b", "10.0.0.2/24"),
		Address: netip.MustParseAddr("10.0.0.2"),
		Poller: func() eventloop.Poller {
			next++
			return &poller{net: net, p: procs[next-1], rng: rng}
		},
	}, net
}

// TestDevicesEcho: two devices connect, send and write to each other, and disconnect, over networks
// of all kinds.
func TestDevicesEcho(t *testing.T) {
	for name, cfg := range map[string]network.Config{
		"perfect": {},
		"cut":     {Short: 0.5, MinBuffer: 200, MaxBuffer: 4000},
		"far":     {Link: network.Link{Delay: 80 * time.Millisecond, Jitter: 40 * time.Millisecond, MSS: 536}},
		"bad":     {Short: 0.3, Link: network.Link{Delay: 5 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.1, MSS: 100}},
	} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					sc, net := devices(seed, cfg)
					w := sides.New(t, sc)
					c := w.Connected(3)
					w.Must(c.AQ.PostSend(1, "ping"))
					w.Until("the ping", func() bool { return len(c.BQ.Of(verbs.Recv)) == 1 })
					w.Same("the ping", c.BQ.Slot(0)[:4], []byte("ping"))
					w.Must(c.BQ.PostSend(1, "pong"))
					w.Until("the pong", func() bool { return len(c.AQ.Of(verbs.Recv)) == 1 })
					w.Same("the pong", c.AQ.Slot(0)[:4], []byte("pong"))
					far, near := w.Memory(c.BQ, 20000, sides.RemoteAll, 1), w.Memory(c.AQ, 20000, verbs.LocalWrite, 2)
					w.Must(c.AQ.Write(2, verbs.Signaled, sides.Part(near, 0, 20000), far, 0))
					w.Barrier(c.AQ, c.BQ)
					w.Same("what was written", far.Bytes, near.Bytes)
					w.Disconnect(c)
					w.Close()
					rest(t, net)
				})
			})
		}
	}
}

// rest waits until no events are left.
func rest(t *testing.T, net *network.Network) {
	t.Helper()
	for range 10000 {
		due, ok := net.Next()
		if !ok {
			break
		}
		time.Sleep(time.Until(due))
		net.Step(0)
	}
	if _, ok := net.Next(); ok || net.InFlight() != 0 {
		t.Errorf("something is left to happen, %d bytes in flight", net.InFlight())
	}
}
