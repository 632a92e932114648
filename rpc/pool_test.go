package rpc

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

var (
	who      = NewRawMethod("test.Who")
	whoTwice = NewRawMethod("test.WhoTwice", MethodConfig{Idempotent: true})
)

// fleet is servers of one program on machines of their own, in virtual time, and a pool of them.
// Each answers calls of who with its address.
type fleet struct {
	*actortest.World
	t       *testing.T
	members []*member
	c       *Client
}

// member is a server of a fleet.
type member struct {
	rt     *rdma.Runtime
	device string
	addr   string
	s      *Server
	mu     sync.Mutex
	calls  int
	delay  time.Duration // of answers
	fails  error         // the answer, if not nil
}

// listed is a Resolver whose addresses the test changes.
type listed struct{ update func([]string, error) }

func (l *listed) Watch(_ *rdma.Runtime, update func([]string, error)) func() {
	l.update = update
	return func() {}
}

// inFleet runs test with n servers and a pool of them.
func inFleet(t *testing.T, n int, cfg PoolConfig, test func(f *fleet)) {
	t.Helper()
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		f := &fleet{World: w, t: w.T()}
		for i := range n {
			m := &member{device: fmt.Sprintf("mem%d", i+1), addr: fmt.Sprintf("10.0.0.%d:7471", i+2)}
			m.rt = w.Host(m.device, fmt.Sprintf("10.0.0.%d", i+2))
			m.serve(w.T())
			f.members = append(f.members, m)
		}
		f.c = NewPool(w.Runtime(), Static(f.addrs()...), cfg)
		test(f)
		f.c.Close()
		for _, m := range f.members {
			m.s.Close()
		}
	})
}

func (f *fleet) addrs() (all []string) {
	for _, m := range f.members {
		all = append(all, m.addr)
	}
	return all
}

// serve starts the member's server, again if it was closed.
func (m *member) serve(t *testing.T) {
	t.Helper()
	m.s = NewServer(m.rt)
	answer := func(ctx context.Context, _, reply []byte) ([]byte, error) {
		m.mu.Lock()
		m.calls++
		delay, fails := m.delay, m.fails
		m.mu.Unlock()
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return append(reply, m.addr...), fails
	}
	HandleRaw(m.s, who, answer)
	HandleRaw(m.s, whoTwice, answer)
	HandleStream(m.s, count, func(_ context.Context, q *wrapperspb.Int64Value, out *Sender[wrapperspb.Int64Value]) error {
		for i := range q.Value {
			if err := out.Send(wrapperspb.Int64(i)); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
		return nil
	})
	if _, err := m.s.Listen(t.Context(), m.addr); err != nil {
		t.Fatal(err)
	}
}

func (m *member) set(delay time.Duration, fails error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay, m.fails = delay, fails
}

func (m *member) called() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// call returns which server answers.
func (f *fleet) call(ctx context.Context) string {
	f.t.Helper()
	addr, err := CallRaw(ctx, f.c, who, nil, nil)
	if err != nil {
		f.t.Error(err)
	}
	return string(addr)
}

// crowd makes n calls at the same time, which take 10 ms.
func (f *fleet) crowd(n int) {
	f.t.Helper()
	for _, m := range f.members {
		m.set(10*time.Millisecond, nil)
	}
	var all sync.WaitGroup
	for range n {
		all.Go(func() { f.call(f.t.Context()) })
	}
	all.Wait()
}

// connected waits until the pool is connected to all servers.
func (f *fleet) connected() {
	f.t.Helper()
	if err := f.c.Connect(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.Wait()
	for _, s := range f.c.Servers() {
		if s.Connected.IsZero() {
			f.t.Errorf("%s is not connected: %v", s.Addr, s.Err)
		}
	}
}

// A server that drains, or loses its connections, costs no call: those that it has not executed
// are made elsewhere, without Retry.
func TestServerLeavesThePool(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 200 {
					f.call(f.t.Context())
					time.Sleep(time.Millisecond)
				}
			})
		}
		for _, m := range f.members {
			time.Sleep(30 * time.Millisecond)
			if err := m.s.Shutdown(f.t.Context()); err != nil {
				f.t.Error(err)
			}
			m.s.Close()
			m.serve(f.t)
			time.Sleep(30 * time.Millisecond)
		}
		all.Wait()
		total := 0
		for _, m := range f.members {
			total += m.called()
		}
		if total != 2000 {
			f.t.Errorf("%d executions of 2,000 calls", total)
		}
	})
}

// Streams choose a server, too.
func TestStreamsOfAPool(t *testing.T) {
	inFleet(t, 2, PoolConfig{}, func(f *fleet) {
		in, err := Open(f.t.Context(), f.c, count, wrapperspb.Int64(3))
		if err != nil {
			f.t.Fatal(err)
		}
		n := 0
		for _, err := range in.All() {
			if err != nil {
				f.t.Error(err)
			}
			n++
		}
		if n != 3 {
			f.t.Errorf("%d items", n)
		}
	})
}
