package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

const (
	oneSided   = 64 << 10 // bytes of memory of each side
	largest    = 16 << 20
	many       = 64 // concurrent connections
	roundTrips = 20 // of each size
)

// stage is an echo server on the device's address.
type stage struct {
	rt       *rdma.Runtime
	sys      *actor.ActorSystem
	at       string          // the server's address
	accepted chan *actor.PID // the server's side of connections
}

// idConfig returns the configuration of every identifier.
func idConfig() rdma.IDConfig { return rdma.IDConfig{Memory: oneSided, MaxMessage: largest} }

// runLoopback makes actors exchange messages over the device, as a program's would.
func runLoopback(t *testing.T, p *plan) {
	s := &stage{sys: actor.NewActorSystem(), accepted: make(chan *actor.PID, many)}
	t.Cleanup(s.sys.Shutdown)
	var err error
	// no other peers connect: both ends are in this process
	s.rt, err = rdma.Open(s.sys, rdma.Config{Device: p.newDriver(), Security: &rdma.Security{Mode: rdma.Insecure}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		if err := s.rt.Shutdown(ctx); err != nil {
			t.Errorf("not given back: %v", err)
		}
	})
	l, err := ask[*rdma.Listening](t, s, s.rt.CreateID(s.spawnOwner(nil), idConfig()), &rdma.Serve{Addr: net.JoinHostPort(p.Address.String(), "0")})
	if err != nil {
		t.Fatal(err)
	}
	s.at = l.Local.String()
	t.Run("echo", s.testEcho)
	t.Run("large messages", s.testLarge)
	t.Run("writes and reads", s.writeAndRead)
	t.Run("atomics", func(t *testing.T) {
		if !p.Atomics {
			t.Skip("the device has none")
		}
		s.testAtomics(t)
	})
	t.Run("many connections", s.testMany)
}

// spawnOwner spawns an actor that sends the messages that it receives to got, or echoes them if
// that is nil.
func (s *stage) spawnOwner(got chan<- []byte) *actor.PID {
	return s.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Established:
			if got == nil {
				s.accepted <- ctx.Sender()
			}
		case *rdma.Received:
			if got == nil {
				ctx.Respond(rdma.NewSend(m.Data))
			} else {
				got <- bytes.Clone(m.Data)
			}
		case *rdma.Closed:
			if got != nil {
				close(got)
			}
		}
	}, s.rt.OnLoop()))
}

// ask calls rdma.Ask with the suite's patience.
func ask[A cmid.Event](t *testing.T, s *stage, id *actor.PID, c cmid.Command) (A, error) {
	t.Helper()
	ctx, stop := context.WithTimeoutCause(t.Context(), patience, errors.New("no answer"))
	defer stop()
	return rdma.Ask[A](ctx, s.rt, id, c)
}

// must calls ask, and fails the test on an error.
func must[A cmid.Event](t *testing.T, s *stage, id *actor.PID, c cmid.Command) A {
	t.Helper()
	a, err := ask[A](t, s, id, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pair is a connection.
type pair struct {
	s              *stage
	client, server *actor.PID
	got            chan []byte // received by the client
}

func (s *stage) connectPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{s: s, got: make(chan []byte, roundTrips)}
	p.client = s.rt.CreateID(s.spawnOwner(p.got), idConfig())
	must[*rdma.Established](t, s, p.client, &rdma.Dial{Addr: s.at})
	select {
	case p.server = <-s.accepted:
	case <-timeoutChannel(t):
		t.Fatal("the server's side is not established")
	}
	return p
}

// timeoutChannel returns a channel that is closed after patience.
func timeoutChannel(t *testing.T) <-chan struct{} {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	return ctx.Done()
}

// close ends the connection, and waits for its end.
func (p *pair) close(t *testing.T) {
	t.Helper()
	p.s.sys.Root.Send(p.client, &rdma.Close{})
	for {
		select {
		case b, more := <-p.got:
			if !more {
				return
			}
			t.Errorf("%d bytes that nobody has asked for", len(b))
		case <-timeoutChannel(t):
			t.Fatal("the connection does not end")
		}
	}
}

// checkEchoes sends messages of n bytes without waiting, and checks that each is echoed.
func (p *pair) checkEchoes(t *testing.T, n, times int) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // to be repeated
	sent := make([]byte, n)
	for i := range sent {
		sent[i] = byte(random.Uint32())
	}
	for range times {
		p.s.sys.Root.Send(p.client, rdma.NewSend(sent))
	}
	for i := range times {
		select {
		case b, open := <-p.got:
			if !open {
				t.Fatalf("the connection has ended before message %d of %d bytes", i, n)
			}
			if !bytes.Equal(b, sent) {
				t.Fatalf("message %d of %d bytes came back otherwise, with %d bytes", i, n, len(b))
			}
		case <-timeoutChannel(t):
			t.Fatalf("message %d of %d bytes has not come back", i, n)
		}
	}
}

func (s *stage) testEcho(t *testing.T) {
	p := s.connectPair(t)
	for _, n := range []int{1, 64, 1000, 4096, 4097, 16 << 10} {
		p.checkEchoes(t, n, roundTrips)
	}
	p.close(t)
}

func (s *stage) testLarge(t *testing.T) {
	p := s.connectPair(t)
	for _, n := range []int{64 << 10, 1 << 20, largest} {
		p.checkEchoes(t, n, 2)
	}
	p.close(t)
}

// allocShared allocates memory on both sides, and returns it and the server's key.
func (p *pair) allocShared(t *testing.T, access rdma.Access) (near, far *rdma.Memory, key rdma.RemoteKey) {
	t.Helper()
	far = must[*rdma.MemoryAllocated](t, p.s, p.server, &rdma.AllocMemory{Bytes: oneSided / 2, Access: access}).Memory
	near = must[*rdma.MemoryAllocated](t, p.s, p.client, &rdma.AllocMemory{Bytes: oneSided / 2}).Memory
	return near, far, must[*rdma.Granted](t, p.s, p.server, &rdma.Grant{Memory: far}).Key
}

// callOnLoop calls f on the identifier's loop, where memory may be used.
func (p *pair) callOnLoop(t *testing.T, id *actor.PID, f func() error) {
	t.Helper()
	must[*rdma.Done](t, p.s, id, &rdma.Call{Fn: func(*cmid.ID) error { return f() }})
}

func (s *stage) writeAndRead(t *testing.T) {
	p := s.connectPair(t)
	near, far, key := p.allocShared(t, rdma.RemoteRead|rdma.RemoteWrite)
	pattern := bytes.Repeat([]byte("one-sided"), 1000)
	p.callOnLoop(t, p.client, func() error { _, err := near.WriteAt(pattern, 0); return err })
	must[*rdma.WriteDone](t, s, p.client, &rdma.Write{Memory: near, Length: len(pattern), Key: key, Offset: 100})
	p.checkEchoes(t, 1, 1) // after the Write: then its bytes are there
	got := make([]byte, len(pattern))
	p.callOnLoop(t, p.server, func() error { _, err := far.ReadAt(got, 100); return err })
	if !bytes.Equal(got, pattern) {
		t.Error("the peer has other bytes than were written")
	}
	const at = 16 << 10
	must[*rdma.ReadDone](t, s, p.client, &rdma.Read{Key: key, Offset: 100, Memory: near, At: at, Length: len(pattern)})
	clear(got)
	p.callOnLoop(t, p.client, func() error { _, err := near.ReadAt(got, at); return err })
	if !bytes.Equal(got, pattern) {
		t.Error("other bytes were read than the peer has")
	}
	p.close(t)
}

func (s *stage) testAtomics(t *testing.T) {
	p := s.connectPair(t)
	near, far, key := p.allocShared(t, rdma.RemoteAtomic)
	const times = 10
	for i := range uint64(times) {
		if old := must[*rdma.AtomicDone](t, s, p.client, &rdma.FetchAdd{Memory: near, Key: key, Add: 3}).Old; old != 3*i {
			t.Fatalf("fetch and add number %d found %d, not %d", i, old, 3*i)
		}
	}
	if old := must[*rdma.AtomicDone](t, s, p.client, &rdma.CompareSwap{Memory: near, Key: key, Compare: 3 * times, Swap: 7}).Old; old != 3*times {
		t.Errorf("compare and swap found %d", old)
	}
	b := make([]byte, 8)
	p.callOnLoop(t, p.server, func() error { _, err := far.ReadAt(b, 0); return err })
	if n := binary.NativeEndian.Uint64(b); n != 7 {
		t.Errorf("the peer has %d, not what was swapped in", n)
	}
	p.close(t)
}

func (s *stage) testMany(t *testing.T) {
	var all []*pair
	for range many {
		all = append(all, s.connectPair(t))
	}
	for _, p := range all {
		p.checkEchoes(t, 100, roundTrips)
	}
	for _, p := range all {
		p.close(t)
	}
}
