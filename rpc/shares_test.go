package rpc

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

var idle = NewStream[wrapperspb.Int64Value, Bytes]("test.Idle")

var stuck = NewRawMethod("test.Stuck")

// handleIdle handles streams of idle by sending nothing until their contexts end.
func handleIdle(s *Server) {
	HandleStream(s, idle, func(ctx context.Context, _ *wrapperspb.Int64Value, _ *Sender[Bytes]) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

// at returns a runtime on a separate machine.
func (r *rig) at(addr string) *rdma.Runtime { return r.Host("host "+addr, addr) }

// rawFrom makes a rawClient on another machine.
func (r *rig) rawFrom(rt *rdma.Runtime) *raw {
	r.t.Helper()
	p := r.Probe()
	c := &raw{p, rt.CreateID(p.PID(), rdma.IDConfig{})}
	p.Request(c.id, &rdma.Dial{Addr: r.addr, PrivateData: wire.Hello{Version: 1, Window: 64}.Bytes()})
	actortest.Next[*rdma.Established](p)
	return c
}

// begin makes calls in slots from first on, of a method that was declared.
func (c *raw) begin(h wire.Header, first, n int, body string) {
	frames := make([][]byte, n)
	for i := range frames {
		h.Type, h.Call = wire.FrameCall, wire.CallID(first+i)
		frames[i] = frame(h, body)
	}
	c.say(frames...)
}

// tally counts the answers that have come to an actor, by their code; replies are 0.
func (c *raw) tally(t *testing.T, n int) map[Code]int {
	t.Helper()
	codes := make(map[Code]int)
	for seen := 0; seen < n; {
		for data := actortest.Next[*rdma.Received](c.Probe).Data; len(data) > 0; seen++ {
			h, _, rest, err := wire.ParseFrame(data)
			if err != nil {
				t.Fatal(err)
			}
			if data = rest; h.Type == wire.FrameError && h.Flags&wire.FlagRefused == 0 {
				t.Fatal("a handler was called for ", Code(h.Number))
			}
			codes[Code(h.Number)]++
		}
	}
	return codes
}

// One machine has all the streams and calls that a single machine may have. Others still get
// theirs: a call that blocks, one on the loop, and a stream, over another connection of the same
// machine and from another machine. Excess calls are refused immediately.
func TestIdleStreamsStarveNobody(t *testing.T) {
	for name, method := range map[string]string{"streams": "test.Idle", "calls": "test.Stuck"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				handleEcho(s)
				handleCount(s)
				handleIdle(s)
				HandleRaw(s, stuck, func(ctx context.Context, _, _ []byte) ([]byte, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
				HandleRaw(s, nowhere, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil }, HandlerConfig{OnLoop: true})
			}, func(r *rig) {
				far := r.at("10.0.0.9")
				h := wire.Header{}
				if method == "test.Idle" {
					h.Flags = wire.FlagStream
				}
				for range 8 {
					c := r.rawClient()
					c.say(frame(wire.Header{Type: wire.FrameDeclare}, method))
					c.begin(h, 0, 1024, "")
				}
				r.Wait()
				places := r.s.InFlight()
				if places < 1000 || places >= r.s.cfg.MaxCallsInAll {
					r.t.Errorf("one machine has %d places", places)
				}
				for from, rt := range map[string]*rdma.Runtime{"the same machine": r.Runtime(), "another machine": far} {
					c, err := Dial(r.t.Context(), rt, r.addr)
					if err != nil {
						r.t.Fatal(err)
					}
					for _, m := range []RawMethod{echo, nowhere} {
						if _, err := CallRaw(r.t.Context(), c, m, nil, nil); err != nil {
							r.t.Errorf("%s: %v", from, err)
						}
					}
					in, err := Open(r.t.Context(), c, count, wrapperspb.Int64(3))
					for err == nil {
						_, err = in.Receive()
					}
					if !errors.Is(err, io.EOF) {
						r.t.Errorf("%s: %v", from, err)
					}
					c.Close()
				}
			})
		})
	}
}

// A machine that comes later gets its share, and so do those after it. The rest is shared by the
// same rule, and a machine without a place always gets one.
func TestStreamsAreSharedFairly(t *testing.T) {
	inWorld(t, rigConfig{server: ServerConfig{MaxStreamsInAll: 64, MaxStreams: 64, MaxCalls: 100}}, func(s *Server) {
		handleIdle(s)
	}, func(r *rig) {
		var got []int
		for _, from := range []string{"10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14", "10.0.0.15", "10.0.0.16", "10.0.0.17"} {
			before := r.s.InFlight()
			rt := r.at(from)
			for range 3 {
				c := r.rawFrom(rt)
				c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Idle"))
				c.begin(wire.Header{Flags: wire.FlagStream}, 0, 64, "")
			}
			r.Wait()
			got = append(got, r.s.InFlight()-before)
		}
		// Of 64 four are kept. 31, then half of the rest, ...
		if got[0] < 28 || got[0] > 32 || got[1] < 13 || got[6] < 1 {
			r.t.Errorf("the machines have %v streams", got)
		}
	})
}

// Streams beyond their limit are refused where they are opened, and leave room for calls.
func TestStreamsLeaveRoomForCalls(t *testing.T) {
	inWorld(t, rigConfig{client: ClientConfig{MaxCalls: 10}}, func(s *Server) {
		handleEcho(s)
		handleCount(s)
	}, func(r *rig) {
		var open []*Receiver[wrapperspb.Int64Value]
		for range 5 {
			in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1))
			if err != nil {
				r.t.Fatal(err)
			}
			open = append(open, in)
		}
		_, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1))
		want(r.t, err, ErrOverloaded, FateNotSent)
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
		for _, in := range open {
			in.Close()
		}
		r.Wait()
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1))
		if err != nil {
			r.t.Fatal(err)
		}
		in.Close()
		r.Disconnect(r.c.link().id)
		r.Wait()
		if n := r.c.streams.Load(); n != 0 {
			r.t.Errorf("%d streams are open after their connection", n)
		}
	})
}

// A server counts the streams of a connection itself: it does not rely on a limit of its client.
func TestStreamsOfAConnection(t *testing.T) {
	inWorld(t, rigConfig{server: ServerConfig{MaxCalls: 8}}, func(s *Server) {
		handleEcho(s)
		handleIdle(s)
	}, func(r *rig) {
		c := r.rawClient()
		c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Idle"), frame(wire.Header{Type: wire.FrameDeclare, Number: 1}, "test.Echo"))
		c.begin(wire.Header{Flags: wire.FlagStream}, 0, 8, "")
		if n := c.tally(r.t, 4)[CodeOverloaded]; n != 4 {
			r.t.Errorf("%d of 8 streams were refused", n)
		}
		c.begin(wire.Header{Number: 1}, 4, 4, "")
		if n := c.tally(r.t, 4)[0]; n != 4 {
			r.t.Errorf("%d of 4 calls beside them were answered", n)
		}
		if n := r.s.InFlight(); n != 4 {
			r.t.Errorf("%d streams are open", n)
		}
	})
}
