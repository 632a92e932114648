package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A request arrives after an idle server has sent its last drain frame. It is not executed, and its
// caller knows that: the frame covers every call without an answer.
func TestCallCrossesTheEndOfADrain(t *testing.T) {
	inWorld(t, rigConfig{}, func(s *Server) {
		handleEcho(s)
		handleBlock(s)
	}, func(r *rig) {
		c := r.rawClient()
		drained := make(chan error, 1)
		go func() { drained <- r.s.Shutdown(r.within(time.Minute)) }()
		var flags []uint8
		for len(flags) == 0 || flags[len(flags)-1]&wire.FlagLast == 0 {
			h, body, rest, err := wire.ParseFrame(actortest.Next[*rdma.Received](c.Probe).Data)
			for ; err == nil; h, body, rest, err = wire.ParseFrame(rest) {
				if h.Type != wire.FrameDrain || len(body) > 0 {
					r.t.Fatalf("a frame of type %d", h.Type)
				}
				if flags = append(flags, h.Flags); len(rest) == 0 {
					break
				}
			}
		}
		c.say(declareEcho, frame(wire.Header{Type: wire.FrameCall}, ""))
		if err := <-drained; err != nil {
			r.t.Error(err)
		}
		if len(flags) != 2 || flags[0] != 0 {
			r.t.Errorf("the drain frames have flags %v", flags)
		}
	})
}

// A connection that the server has accepted, and that its client alone knows to be up yet, ends in
// order, too: the client is notified that its calls were refused.
func TestDrainCrossesTheEndOfASetUp(t *testing.T) {
	inWorlds(t, handleEcho, func(r *rig) {
		r.Latency(there, 100*time.Millisecond)
		result := make(chan error, 1)
		go func() {
			c, err := Dial(r.within(time.Minute), r.Runtime(), r.addr)
			if err == nil {
				_, err = CallRaw(r.within(time.Minute), c, echo, []byte("crosses"), nil)
				c.Close()
			}
			result <- err
		}()
		for len(r.s.connections()) < 2 {
			r.Advance(time.Millisecond)
		}
		if err := r.s.Shutdown(r.within(time.Minute)); err != nil {
			r.t.Error(err)
		}
		if err := <-result; !errors.Is(err, ErrDraining) || !isRetryable(false, err) {
			r.t.Errorf("got %v, want a call that was refused", err)
		}
	})
}

// A client that connects after the server has begun to drain, and before its listener is closed, is
// notified of that. It is not taken for a foreign client.
func TestConnectToADrainingServer(t *testing.T) {
	inWorlds(t, handleEcho, func(r *rig) {
		r.s.draining.Store(true)
		_, err := Dial(r.within(time.Minute), r.Runtime(), r.addr)
		if !errors.Is(err, ErrDraining) {
			r.t.Errorf("got %v", err)
		}
		r.s.draining.Store(false)
	})
}

// The same at the client: the last drain frame refuses the calls that wait for an answer.
func TestLastDrainRefusesWhatIsUnanswered(t *testing.T) {
	inWorld(t, rigConfig{}, func(s *Server) { handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 3)
		l := r.c.link()
		for _, c := range r.s.connections() { // one that did not see them
			c.out.mu.Lock()
			c.out.putLocked(wire.Header{Type: wire.FrameDrain, Flags: wire.FlagLast}, nil)
			c.out.mu.Unlock()
			c.out.requestFlush()
		}
		for range 3 {
			err := <-errs
			want(r.t, err, ErrDraining, FateRefused)
			if !isRetryable(false, err) {
				r.t.Error("a call that was not executed may be repeated")
			}
		}
		l.out.mu.Lock()
		defer l.out.mu.Unlock()
		if l.inUse.Load() != 0 {
			r.t.Errorf("%d calls are in flight", l.inUse.Load())
		}
	})
}

// connections returns the connections that the server has.
func (s *Server) connections() (all []*serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// The client closes its connection to a server that drains, when it has its answers. Otherwise a
// server that drains forever would keep one connection each time that its client makes another.
func TestLeavesAServerThatDrainsForEver(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{client: quick}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 1)
		l := r.c.link()
		for _, c := range r.s.connections() {
			c.out.mu.Lock()
			c.out.putLocked(wire.Header{Type: wire.FrameDrain}, nil)
			c.out.mu.Unlock()
			c.out.requestFlush()
		}
		r.Advance(time.Minute)
		select {
		case <-l.gone:
			r.t.Error("the call's connection was closed")
		default:
		}
		close(b.release)
		if err := <-errs; err != nil {
			r.t.Error(err)
		}
		r.Wait()
		select {
		case <-l.gone:
		default:
			r.t.Error("the old connection is still there")
		}
		if n := len(r.s.connections()); n != 1 {
			r.t.Errorf("the server has %d connections, want the new one", n)
		}
	})
}

// After a drain has answered everything, its connections shut down politely, which waits for a
// client that was cut off. Closing the server or the end of the context stops that.
func TestCutsOffWhatIsEndingInOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(r *rig, stop context.CancelFunc)
	}{
		{"Close", func(r *rig, _ context.CancelFunc) { r.s.Close() }},
		{"context", func(_ *rig, stop context.CancelFunc) { stop() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
				r.Cut("mem0", "mem1")
				ctx, stop := context.WithCancel(r.t.Context())
				defer stop()
				drained := make(chan error, 1)
				go func() { drained <- r.s.Shutdown(ctx) }()
				r.Advance(time.Second)
				if n := len(r.s.connections()); n != 1 {
					r.t.Fatalf("%d connections are ending in order, want one", n)
				}
				at := r.Now()
				c.end(r, stop)
				<-drained
				if took := r.Now().Sub(at); took > 600*time.Millisecond || len(r.s.connections()) > 0 {
					r.t.Errorf("it took %v, and %d connections are left", took, len(r.s.connections()))
				}
				r.Heal("mem0", "mem1")
			})
		})
	}
}
