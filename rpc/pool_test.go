package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

var (
	who      = NewRawMethod("test.Who", MethodConfig{})
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
	m.s = NewServer(m.rt, Config{})
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
	HandleRaw(m.s, who, answer, HandlerConfig{})
	HandleRaw(m.s, whoTwice, answer, HandlerConfig{})
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

// A client is made while its server is down: a call says why it fails, and works when it is up.
func TestClientWithoutItsServer(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		far := w.Host("mem1", there)
		c := NewClient(w.Runtime(), there+":7471", quick)
		defer c.Close()
		_, err := CallRaw(w.T().Context(), c, echo, nil, nil)
		want(w.T(), err, ErrUnavailable, FateNotSent)
		want(w.T(), err, unix.ECONNREFUSED, FateNotSent)
		if err := c.Connect(w.T().Context()); !errors.Is(err, ErrUnavailable) {
			w.T().Errorf("Connect: %v", err)
		}
		s := NewServer(far, Config{})
		defer s.Close()
		handleEcho(s)
		if _, err := s.Listen(w.T().Context(), there+":7471"); err != nil {
			w.T().Fatal(err)
		}
		w.Advance(time.Minute)
		if got, err := CallRaw(w.T().Context(), c, echo, []byte("x"), nil); err != nil || string(got) != "x" {
			w.T().Errorf("%q, %v", got, err)
		}
	})
}

// The first call of a client waits for the connection; no call before it connects.
func TestFirstCallConnects(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.Advance(time.Minute)
		if n := len(f.Runtime().Inspect()); n != 0 {
			f.t.Errorf("%d identifiers before the first call", n)
		}
		if got := f.call(f.t.Context()); got == "" {
			f.t.Error("nobody has answered")
		}
	})
}

// Every policy gives every server calls: RoundRobin the same number.
func TestBalance(t *testing.T) {
	for balance, within := range map[Balance][2]int{LeastLoaded: {200, 400}, RoundRobin: {300, 300}, ByKey: {200, 400}} {
		t.Run(fmt.Sprint(balance), func(t *testing.T) {
			inFleet(t, 3, PoolConfig{Balance: balance}, func(f *fleet) {
				f.connected()
				f.Advance(time.Minute) // the slow start
				got := make(map[string]int)
				for i := range 900 {
					got[f.call(WithKey(f.t.Context(), fmt.Sprint(i)))]++
				}
				for addr, n := range got {
					if n < within[0] || n > within[1] {
						f.t.Errorf("%s: %d calls of 900", addr, n)
					}
				}
				if len(got) != 3 {
					f.t.Errorf("%v", got)
				}
			})
		})
	}
}

// A slow server gets fewer calls from those that look for the least loaded.
func TestLeastLoaded(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		f.Advance(time.Minute)
		f.members[0].set(time.Second, nil)
		for _, m := range f.members[1:] {
			m.set(10*time.Millisecond, nil)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 100 {
					f.call(f.t.Context())
				}
			})
		}
		all.Wait()
		if n := f.members[0].called(); n > 200 {
			f.t.Errorf("the server that is 100 times slower has got %d calls of 2,000", n)
		}
	})
}

// A key's server stays the same, also from another client and for the keys of other servers when
// one is gone.
func TestByKey(t *testing.T) {
	inFleet(t, 4, PoolConfig{Balance: ByKey}, func(f *fleet) {
		f.connected()
		other := NewPool(f.Runtime(), Static(reversed(f.addrs())...), PoolConfig{Balance: ByKey})
		defer other.Close()
		if err := other.Connect(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		f.Wait()
		of := make(map[string]string)
		for i := range 100 {
			key := fmt.Sprint("key", i)
			of[key] = f.call(WithKey(f.t.Context(), key))
			if got, _ := CallRaw(WithKey(f.t.Context(), key), other, who, nil, nil); string(got) != of[key] {
				f.t.Errorf("%s: %s at one client, %s at another", key, of[key], got)
			}
		}
		gone := f.members[1]
		gone.s.Close()
		f.Wait()
		for _, key := range slices.Sorted(maps.Keys(of)) {
			got := f.call(WithKey(f.t.Context(), key))
			if (of[key] != gone.addr) != (got == of[key]) {
				f.t.Errorf("%s: at %s after %s, and %s is gone", key, got, of[key], gone.addr)
			}
		}
	})
}

func reversed(s []string) []string {
	slices.Reverse(s)
	return s
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
			if err := m.s.Drain(f.t.Context()); err != nil {
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

// A server that fails fast has few calls in flight: it is ejected, and comes back.
func TestEject(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		f.Advance(time.Minute)
		bad := f.members[0]
		bad.set(0, ErrInternal)
		failed := 0
		for range 300 {
			if _, err := CallRaw(f.t.Context(), f.c, who, nil, nil); err != nil {
				failed++
			}
		}
		if failed != 5 {
			f.t.Errorf("%d calls have failed before it was ejected", failed)
		}
		if i := slices.IndexFunc(f.c.Servers(), func(s ServerInfo) bool { return !s.Ejected.IsZero() }); i != 0 {
			f.t.Errorf("%+v", f.c.Servers())
		}
		bad.set(0, nil)
		f.Advance(10*time.Second + time.Millisecond)
		before := bad.called()
		f.crowd(300)
		if n := bad.called() - before; n == 0 || n > 50 {
			f.t.Errorf("%d calls of 300 immediately after it was ejected", n)
		}
		f.Advance(time.Minute)
		before = bad.called()
		f.crowd(300)
		if n := bad.called() - before; n < 60 {
			f.t.Errorf("%d calls of 300 a minute later", n)
		}
	})
}

// At most half of the servers are ejected: calls fail, but the others are not overrun.
func TestHalfIsEjectedAtMost(t *testing.T) {
	inFleet(t, 4, PoolConfig{}, func(f *fleet) {
		f.connected()
		for _, m := range f.members {
			m.set(0, ErrInternal)
		}
		for range 200 {
			if _, err := CallRaw(f.t.Context(), f.c, who, nil, nil); !errors.Is(err, ErrInternal) {
				f.t.Errorf("got %v", err)
			}
		}
		ejected := 0
		for _, s := range f.c.Servers() {
			if !s.Ejected.IsZero() {
				ejected++
			}
		}
		if ejected != 2 {
			f.t.Errorf("%d of 4 are ejected", ejected)
		}
	})
}

// A call of an idempotent method that one server does not answer is answered by another; the first
// attempt is cancelled. Other methods are not called twice.
func TestHedge(t *testing.T) {
	inFleet(t, 2, PoolConfig{Hedge: 50 * time.Millisecond}, func(f *fleet) {
		f.connected()
		slow := f.members[0]
		slow.set(time.Hour, nil)
		for range 20 {
			begin := f.Elapsed()
			got, err := CallRaw(f.t.Context(), f.c, whoTwice, nil, nil)
			if err != nil || string(got) != f.members[1].addr || f.Elapsed()-begin > 60*time.Millisecond {
				f.t.Errorf("%q after %v, %v", got, f.Elapsed()-begin, err)
			}
		}
		f.Wait()
		if n, m := f.c.InFlight(), slow.s.InFlight(); n+m != 0 {
			f.t.Errorf("%d and %d attempts are still in flight", n, m)
		}
		if slow.called() == 0 {
			f.t.Error("the slow server was never asked")
		}
		slow.set(time.Second, nil)
		f.members[1].set(time.Second, nil)
		f.c.budget.left.Store(0)
		before := slow.called() + f.members[1].called()
		f.call(f.t.Context())
		if _, err := CallRaw(f.t.Context(), f.c, whoTwice, nil, nil); err != nil {
			f.t.Error(err)
		}
		if n := slow.called() + f.members[1].called() - before; n != 2 {
			f.t.Errorf("%d executions of a call that is not idempotent, and one beyond the budget", n)
		}
	})
}

// Repetitions are at most a tenth of the calls, and a hundred.
func TestRetryBudget(t *testing.T) {
	const calls = 3000
	inWorld(t, rigConfig{server: Config{MaxCallsInAll: 1}, client: Config{Retry: Retry{Attempts: 5}}}, func(s *Server) {
		handleBlock(s)
		handleEcho(s)
	}, func(r *rig) {
		ctx, cancel := context.WithCancel(r.t.Context())
		go func() { _, _ = CallRaw(ctx, r.c, block, nil, nil) }()
		r.Wait()
		for range calls {
			_, err := CallRaw(ctx, r.c, echo, nil, nil)
			want(r.t, err, ErrOverloaded, FateRefused)
		}
		var repeated uint64
		for _, m := range r.c.Inspect() {
			repeated += m.Repeated
		}
		if repeated < calls/10 || repeated > calls/10+100 {
			r.t.Errorf("%d repetitions of %d calls", repeated, calls)
		}
		cancel()
	})
}

// The servers change while calls are in flight: those of a server that left the list are answered,
// then its connection is closed.
func TestServersChange(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		var l listed
		c := NewPool(f.Runtime(), &l, PoolConfig{})
		defer c.Close()
		waits := make(chan error, 1)
		go func() {
			_, err := CallRaw(f.t.Context(), c, who, nil, nil)
			waits <- err
		}()
		f.Wait()
		l.update(nil, errors.New("no name server"))
		if err := <-waits; !errors.Is(err, ErrUnavailable) {
			f.t.Errorf("without servers: %v", err)
		}
		l.update(f.addrs()[:1], nil)
		in, err := Open(f.t.Context(), c, count, wrapperspb.Int64(5))
		if err != nil {
			f.t.Fatal(err)
		}
		l.update(nil, errors.New("no name server")) // says nothing new
		l.update(f.addrs()[1:], nil)
		if got, err := CallRaw(f.t.Context(), c, who, nil, nil); err != nil || string(got) == f.members[0].addr {
			f.t.Errorf("%q, %v", got, err)
		}
		n := 0
		for _, err = range in.All() {
			n++
		}
		if n != 5 || err != nil && !errors.Is(err, io.EOF) {
			f.t.Errorf("%d items, %v", n, err)
		}
		f.Wait()
		if n := len(f.members[0].rt.Inspect()); n != 1 { // it listens
			f.t.Errorf("the server that left has %d identifiers", n)
		}
		l.update(nil, nil)
		_, err = CallRaw(f.t.Context(), c, who, nil, nil)
		want(f.t, err, ErrUnavailable, FateNotSent)
	})
}

// Each client connects to a part of the servers, and clients to different parts.
func TestSubset(t *testing.T) {
	inFleet(t, 6, PoolConfig{}, func(f *fleet) {
		used := make(map[string]int)
		for range 30 {
			c := NewPool(f.Runtime(), Static(f.addrs()...), PoolConfig{Subset: 2})
			defer c.Close()
			if err := c.Connect(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
			servers := c.Servers()
			if len(servers) != 2 {
				f.t.Fatalf("%+v", servers)
			}
			for _, s := range servers {
				used[s.Addr]++
			}
		}
		if len(used) != 6 {
			f.t.Errorf("30 clients of 2 servers each use %v of 6", used)
		}
	})
}

// DNS reports what it finds, again after a while, and soon after a failed look-up.
func TestDNS(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		type found struct {
			hosts []string
			err   error
		}
		looks, reports := make(chan found, 1), make(chan found, 1)
		d := DNS("db.internal:7471", time.Minute).(*dns)
		d.lookUp = func(_ context.Context, host string) ([]string, error) {
			if host != "db.internal" {
				w.T().Errorf("looked up %q", host)
			}
			f := <-looks
			return f.hosts, f.err
		}
		stop := d.Watch(w.Runtime(), func(addrs []string, err error) { reports <- found{addrs, err} })
		failed := errors.New("SERVFAIL")
		for _, step := range []struct {
			after       time.Duration
			look, wants found
		}{
			{0, found{hosts: []string{"10.0.0.2", "fd00::2"}}, found{hosts: []string{"10.0.0.2:7471", "[fd00::2]:7471"}}},
			{time.Minute, found{err: failed}, found{err: failed}},
			{time.Second, found{hosts: []string{"10.0.0.3"}}, found{hosts: []string{"10.0.0.3:7471"}}},
		} {
			w.Advance(step.after)
			looks <- step.look
			w.Wait()
			got := <-reports
			if !slices.Equal(got.hosts, step.wants.hosts) || !errors.Is(got.err, step.wants.err) {
				w.T().Errorf("got %v, want %v", got, step.wants)
			}
		}
		stop()
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

// The error of a call names the server, and how often it was tried.
func TestErrorNamesItsServer(t *testing.T) {
	cfg := Config{Retry: Retry{Attempts: 3}}
	inWorld(t, rigConfig{client: cfg, server: Config{MaxCallsInAll: 1}}, func(s *Server) { handleBlock(s); handleEcho(s) }, func(r *rig) {
		ctx, cancel := context.WithCancel(r.t.Context())
		go func() { _, _ = CallRaw(ctx, r.c, block, nil, nil) }()
		r.Wait()
		_, err := CallRaw(ctx, r.c, echo, nil, nil)
		var e *Error
		if !errors.As(err, &e) || e.Server != r.addr || e.Attempts != 3 {
			r.t.Errorf("got %+v", err)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, "test.Echo at "+r.addr+": ") || !strings.Contains(text, "(refused, 3 attempts)") {
			r.t.Error(text)
		}
		cancel()
	})
}

// Streams that are open and say nothing do not make a server look slow.
func TestIdleStreamsOfAPool(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		f.Advance(time.Minute)
		for range 6 {
			in, err := Open(f.t.Context(), f.c, count, wrapperspb.Int64(1<<40))
			if err != nil {
				f.t.Fatal(err)
			}
			defer in.Close()
		}
		f.Advance(time.Hour)
		for _, m := range f.members {
			m.set(10*time.Millisecond, nil)
		}
		for range 90 {
			f.call(f.t.Context())
		}
		for _, m := range f.members {
			if n := m.called(); n < 10 {
				f.t.Errorf("%s: %d calls of 90", m.addr, n)
			}
		}
	})
}

// A server that is well between two ejections is ejected as shortly as the first time.
func TestEjectionsAreForgotten(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		bad := f.members[0]
		for range 3 {
			bad.set(0, ErrInternal)
			for range 200 {
				_, _ = CallRaw(f.t.Context(), f.c, who, nil, nil)
			}
			until := f.c.Servers()[0].Ejected
			if d := time.Until(until); d <= 0 || d > 10*time.Second {
				f.t.Errorf("it is ejected for %v", d)
			}
			bad.set(0, nil)
			f.Advance(time.Minute)
			f.crowd(100)
		}
	})
}

// Go does not wait: not for a connection either.
func TestGoBeforeTheConnection(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		c := NewClient(r.Runtime(), r.addr, Config{})
		defer c.Close()
		answers := make(chan any, 1)
		pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				Go(ctx, c, goEcho, &wrapperspb.StringValue{Value: "x"}, GoConfig{})
			case *Reply[wrapperspb.StringValue]:
				answers <- m.Err
			}
		}, r.Runtime().OnLoop()))
		defer r.System().Root.Stop(pid)
		if err := <-answers; !errors.Is(err.(error), ErrUnknownMethod) {
			r.t.Errorf("got %v", err)
		}
	})
}

var goEcho = NewMethod[wrapperspb.StringValue, wrapperspb.StringValue]("test.GoEcho", MethodConfig{})
