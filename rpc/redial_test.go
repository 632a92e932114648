package rpc

import (
	"errors"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// again starts the rig's server anew, at the same address.
func (r *rig) again() {
	r.t.Helper()
	s := NewServer(r.far)
	handleEcho(s)
	if _, err := s.Listen(r.t.Context(), r.addr); err != nil {
		r.t.Fatal(err)
	}
	r.s.Close()
	r.s = s
}

var quick = ClientConfig{Backoff: reconnect.Backoff{First: 10 * time.Millisecond, Most: 500 * time.Millisecond, Stable: time.Second}}

func TestRedials(t *testing.T) {
	inWorld(t, rigConfig{client: quick}, handleEcho, func(r *rig) {
		r.s.Close()
		r.Wait()
		_, err := CallRaw(r.t.Context(), r.c, echo, nil, nil)
		if errors.Is(err, ErrDraining) { // an attempt has met the listener before it went
			want(r.t, err, ErrDraining, FateNotSent)
		} else {
			want(r.t, err, ErrUnavailable, FateNotSent)
		}
		r.Advance(time.Second) // some attempts fail
		_, err = CallRaw(r.t.Context(), r.c, echo, nil, nil)
		want(r.t, err, ErrUnavailable, FateNotSent)
		r.again()
		r.Advance(time.Minute)
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
	})
}

// A connection that has worked is no failed dial: however often such connections end, the pause
// before the next dial is Backoff.First at most. Connections that end without having worked make
// it longer.
func TestPauseAfterAConnection(t *testing.T) {
	backoff := reconnect.Backoff{First: 100 * time.Millisecond, Most: time.Minute, Stable: time.Hour}
	for name, end := range map[string]struct {
		by    func(r *rig)
		grows bool
	}{
		"drained": {by: func(r *rig) {
			old := r.s
			drained := make(chan error, 1)
			go func() { drained <- old.Shutdown(r.t.Context()) }()
			r.Wait()
			r.again()
			if err := <-drained; err != nil {
				r.t.Error(err)
			}
		}},
		"closed in order": {by: func(r *rig) { r.s.Close(); r.again() }},
		"lost after a call": {by: func(r *rig) {
			if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
				r.t.Error(err)
			}
			r.Disconnect(r.c.link().id)
		}},
		"lost": {by: func(r *rig) { r.Disconnect(r.c.link().id) }, grows: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{client: ClientConfig{Backoff: backoff}}, handleEcho, func(r *rig) {
				connected := func() bool { return r.c.link() != nil }
				longest := time.Duration(0)
				for range 10 {
					end.by(r)
					r.Wait()
					begin := r.Elapsed()
					for !connected() {
						r.Advance(time.Millisecond)
					}
					longest = max(longest, r.Elapsed()-begin)
				}
				if most := backoff.First + 10*time.Millisecond; longest > most != end.grows {
					t.Errorf("the longest pause was %v, with First %v", longest, backoff.First)
				}
			})
		})
	}
}

func TestWaitForReady(t *testing.T) {
	inWorld(t, rigConfig{client: ClientConfig{Backoff: quick.Backoff, WaitForReady: true, MaxCalls: 3}}, handleEcho, func(r *rig) {
		r.s.Close()
		begin := r.Elapsed()
		_, err := CallRaw(r.within(time.Minute), r.c, echo, nil, nil)
		want(r.t, err, ErrDeadline, FateNotSent)
		if d := r.Elapsed() - begin; d != time.Minute {
			r.t.Errorf("it waited %v", d)
		}
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := CallRaw(r.t.Context(), r.c, echo, nil, nil)
				errs <- err
			}()
		}
		r.Wait()
		_, err = CallRaw(r.t.Context(), r.c, echo, nil, nil)
		want(r.t, err, ErrOverloaded, FateNotSent)
		r.again()
		for range 3 {
			if err := <-errs; err != nil {
				r.t.Error(err)
			}
		}
		r.s.Close()
		go func() {
			_, err := CallRaw(r.t.Context(), r.c, echo, nil, nil)
			errs <- err
		}()
		r.Wait()
		r.c.Close()
		want(r.t, <-errs, ErrClosed, FateNotSent)
	})
}

// While a server drains, its client finds another one at the address, and calls in flight finish
// with the old one.
func TestMovesOnFromADrainingServer(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{client: ClientConfig{Backoff: quick.Backoff, WaitForReady: true}}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 2)
		old := r.s
		drained := make(chan error, 1)
		go func() { drained <- old.Shutdown(r.t.Context()) }()
		r.Wait()
		r.s = NewServer(r.far)
		handleEcho(r.s)
		if _, err := r.s.Listen(r.t.Context(), r.addr); err != nil {
			r.t.Fatal(err)
		}
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
		if n := r.c.InFlight(); n != 2 {
			r.t.Errorf("%d calls are in flight, want the two that drain", n)
		}
		close(b.release)
		for range 2 {
			if err := <-errs; err != nil {
				r.t.Error(err)
			}
		}
		if err := <-drained; err != nil {
			r.t.Error(err)
		}
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
	})
}

// A call that was or may have been executed is repeated over the next connection, but only if its
// method is idempotent.
func TestRetryOverTheNextConnection(t *testing.T) {
	var b *blocking
	retry := Retry{Attempts: 5, Backoff: 100 * time.Millisecond}
	twice := RawMethod{newMethod("test.Block", unary, bytesCodec, bytesCodec, MethodConfig{Idempotent: true})}
	inWorld(t, rigConfig{client: ClientConfig{Backoff: quick.Backoff, WaitForReady: true, Retry: retry}}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := make(chan error, 1)
		for _, m := range []RawMethod{twice, block} {
			began := len(b.began)
			go func() {
				_, err := CallRaw(r.t.Context(), r.c, m, nil, nil)
				errs <- err
			}()
			r.Wait()
			r.Disconnect(r.c.link().id)
			r.Advance(time.Second)
			if n, more := len(b.began)-began, m == twice; more && n != 2 || !more && n != 1 {
				r.t.Errorf("idempotent %v: the handler was called %d times", more, n)
			}
			if m == twice {
				b.release <- struct{}{}
				if err := <-errs; err != nil {
					r.t.Error(err)
				}
			}
		}
		want(r.t, <-errs, ErrUnavailable, FateUnknown)
	})
}

// A call that was repeated may have been executed if one of its attempts may, although the last one
// was not even sent.
func TestRetryKeepsFate(t *testing.T) {
	retry := Retry{Attempts: 2, Backoff: time.Millisecond}
	never := ClientConfig{Backoff: reconnect.Backoff{First: time.Hour, Most: time.Hour}, Retry: retry}
	twice := RawMethod{newMethod("test.Block", unary, bytesCodec, bytesCodec, MethodConfig{Idempotent: true})}
	var b *blocking
	inWorld(t, rigConfig{client: never}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := make(chan error, 1)
		go func() {
			_, err := CallRaw(r.t.Context(), r.c, twice, nil, nil)
			errs <- err
		}()
		<-b.began
		r.Disconnect(r.c.link().id)
		want(r.t, <-errs, ErrUnavailable, FateUnknown)
	})
}

func TestNoRedialAfterShutdown(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		far := w.Host("mem1", there)
		s := NewServer(far)
		at, err := s.Listen(w.T().Context(), there+":7471")
		if err != nil {
			w.T().Fatal(err)
		}
		c, err := Dial(w.T().Context(), w.Runtime(), at.String(), quick)
		if err != nil {
			w.T().Fatal(err)
		}
		if err := w.Runtime().Shutdown(w.T().Context()); err != nil {
			w.T().Fatal(err)
		}
		_, err = CallRaw(w.T().Context(), c, echo, nil, nil)
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, rdma.ErrShutdown) {
			w.T().Error(err)
		}
		c.Close()
		if c.endpoints[0].timer != nil {
			w.T().Error("it wants to connect again")
		}
		s.Close()
	})
}

// A client whose server drains has no connection until it is time to dial again. When its runtime
// is shut down then, calls that wait for a connection fail: none will come.
func TestNoWaitAfterShutdownBesideADrain(t *testing.T) {
	later := ClientConfig{Backoff: reconnect.Backoff{First: time.Hour, Most: time.Hour}, WaitForReady: true}
	inWorld(t, rigConfig{client: later}, func(s *Server) { handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 1) // keeps the connection that drains
		drained := make(chan error, 1)
		go func() { drained <- r.s.Shutdown(r.within(time.Minute)) }()
		r.Wait()
		waits := make(chan error, 1)
		go func() {
			_, err := CallRaw(r.t.Context(), r.c, echo, nil, nil)
			waits <- err
		}()
		r.Wait()
		if err := r.Runtime().Shutdown(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		<-errs
		want(r.t, <-waits, rdma.ErrShutdown, FateNotSent)
		_, err := CallRaw(r.t.Context(), r.c, echo, nil, nil)
		want(r.t, err, rdma.ErrShutdown, FateNotSent)
		<-drained
	})
}

// Clients that have lost their server dial it again in turns, not all together; one that is closed
// while it waits leaves the queue.
func TestRedialsInTurns(t *testing.T) {
	inWorld(t, rigConfig{client: quick}, handleEcho, func(r *rig) {
		clients := []*Client{r.c}
		for range 149 {
			clients = append(clients, r.dial(quick))
		}
		l := reconnect.LimiterOf(r.Runtime())
		count := func(dialling, waiting int) {
			r.t.Helper()
			d, w := l.Inspect()
			if n := len(r.Runtime().Inspect()); n != dialling || d != dialling || len(w) != waiting {
				r.t.Errorf("%d dial with %d identifiers, %d wait, want %d and %d", d, n, len(w), dialling, waiting)
			}
		}
		r.Silence(there) // dials take long
		r.s.Close()
		r.Advance(50 * time.Second) // keepalive has noticed, and no dial has failed yet
		count(64, 86)
		waiting := 86
		for _, c := range clients[1:] {
			c.mu.Lock()
			queued := c.endpoints[0].queued
			c.mu.Unlock()
			if queued && waiting > 40 {
				c.Close()
				waiting--
			}
		}
		r.Wait()
		count(64, 40)
		r.Unsilence(there)
		r.again()
		r.Advance(5 * time.Minute)
		for _, c := range clients {
			if _, err := CallRaw(r.t.Context(), c, echo, nil, nil); err != nil && !errors.Is(err, ErrClosed) {
				r.t.Error(err)
			}
		}
		for _, c := range clients[1:] {
			c.Close()
		}
		if d, w := l.Inspect(); d != 0 || len(w) != 0 {
			r.t.Errorf("%d dial and %d wait, and all are connected or closed", d, len(w))
		}
	})
}
