package rpc

import (
	"sync/atomic"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/share"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Requests that a client announces and does not send are bounded by memory, and take no places.
// They take no more memory than they announce, however small their parts are. Others are not
// affected.
func TestAnnouncedRequestsAreBounded(t *testing.T) {
	const memory, each, calls = 8 << 20, 100 << 10, 1000
	var handled atomic.Int64
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 128 << 10, Memory: memory, MaxCallsInAll: 2}}, func(s *Server) {
		handledRequests(s, &handled, HandlerConfig{})
		HandleRaw(s, block, echoBytes, HandlerConfig{OnLoop: true})
	}, func(r *rig) {
		for _, name := range []string{"test.Echo", "test.Block"} {
			c := r.rawClientOf(3)
			c.Ignore()
			c.say(frame(wire.Header{Type: wire.FrameDeclare}, name))
			for i := range calls {
				size := each
				if name == "test.Block" {
					size = 60 << 10
				}
				c.say(announce(wire.Header{Call: wire.CallID(i)}, size), part(wire.CallID(i), "x"))
				if i%100 == 0 {
					r.Wait()
				}
			}
			r.Wait()
			taken := r.s.shares.Taken()
			if taken[share.Memory] > memory || taken[share.Calls] > 0 || taken[share.Memory] < memory/8 {
				r.t.Errorf("%s: %v are taken", name, taken)
			}
			if n := r.s.InFlight(); n > 0 {
				r.t.Errorf("%s: %d calls are in flight", name, n)
			}
			r.good()
			c.Send(c.id, &rdma.DestroyID{})
			r.Wait()
			r.nothingKept()
		}
		if handled.Load() != 2 { // those of good
			r.t.Errorf("%d handlers were called", handled.Load())
		}
	})
	p := parts{total: each}
	for i := range each {
		if err := p.add(1, []byte{byte(i)}, each); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	for _, b := range p.all {
		kept += cap(b.b)
	}
	if kept > each+each/8 || len(p.join(nil)) != each {
		t.Errorf("%d bytes are kept for %d", kept, each)
	}
}

// An announced request counts at least the memory that its call takes, however small it is, also
// if its handler is OnLoop, which needs no place.
func TestSmallAnnouncementsCount(t *testing.T) {
	const calls = 100
	for on, cfg := range map[string]HandlerConfig{"goroutine": {}, "loop": {OnLoop: true}} {
		t.Run(on, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) { handledRequests(s, new(atomic.Int64), cfg) }, func(r *rig) {
				c := r.rawClientOf(3)
				c.say(declareEcho)
				for i := range calls {
					c.say(announce(wire.Header{Call: wire.CallID(i)}, 2), part(wire.CallID(i), "x"))
				}
				r.Wait()
				if n := r.requests(); n != calls*arrivalBytes {
					r.t.Errorf("%d calls count %d bytes", calls, n)
				}
			})
		})
	}
}

// A request has its place when it has arrived. If there is none by then it is refused, and nothing
// of it is kept; and if there is none when it is announced, already then.
func TestPlaceOfAnAnnouncedRequest(t *testing.T) {
	var b *blocking
	var handled atomic.Int64
	inWorld(t, rigConfig{server: ServerConfig{MaxCallsInAll: 1}}, func(s *Server) {
		handledRequests(s, &handled, HandlerConfig{})
		b = handleBlock(s)
	}, func(r *rig) {
		c := r.rawClientOf(3)
		c.say(declareEcho, frame(wire.Header{Type: wire.FrameDeclare, Number: 1}, "test.Block"), announce(wire.Header{Call: 1}, 2), part(1, "x"))
		c.say(frame(wire.Header{Type: wire.FrameCall, Number: 1, Call: 2}, ""))
		<-b.began
		for _, next := range [][]byte{part(1, "y"), announce(wire.Header{Call: 1}, 2)} {
			c.say(next)
			if h, _ := c.answer(r.t); h.Call != 1 || Code(h.Number) != CodeOverloaded || h.Flags&wire.FlagRefused == 0 {
				r.t.Errorf("answered with %+v", h)
			}
		}
		if n := r.requests(); n > 4*smallBuffer {
			r.t.Errorf("%d bytes are kept", n)
		}
		close(b.release)
		c.answer(r.t)
		c.say(announce(wire.Header{Call: 1}, 2), part(1, "xy"))
		if h, body := c.answer(r.t); h.Type != wire.FrameReply || body != "xy" || handled.Load() != 1 {
			r.t.Errorf("answered with %+v %q, %d were handled", h, body, handled.Load())
		}
	})
}

// A Shutdown does not wait for parts that do not come. Their calls are not executed.
func TestShutdownWithoutTheParts(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		r.Latency(there, 10*time.Millisecond)
		c := r.rawClientOf(3)
		c.Ignore()
		c.say(declareEcho, announce(wire.Header{Call: 1}, 2), part(1, "x"))
		r.Advance(20 * time.Millisecond)
		ended, down := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := CallRaw(r.t.Context(), r.c, echo, make([]byte, 4<<20-wire.HeaderLen), nil)
			ended <- err
		}()
		r.Advance(50 * time.Millisecond) // its parts are on their way
		go func() { down <- r.s.Shutdown(r.within(time.Minute)) }()
		want(r.t, <-ended, ErrDraining, FateRefused)
		c.Send(c.id, &rdma.DestroyID{})
		if err := <-down; err != nil {
			r.t.Error(err)
		}
		r.nothingKept()
	})
}
