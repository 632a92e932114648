package rpc

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/share"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// kept returns the number of bytes that a server's connections report as kept, and the number
// handed over and not yet confirmed.
func (s *Server) kept() (here, handed int) {
	for _, c := range s.connections() {
		c.out.mu.Lock()
		here += c.out.bytes + c.out.purse.Requests
		c.out.mu.Unlock()
		handed += c.out.ahead.Bytes
	}
	return here, handed
}

// nothingKept asserts that all shared memory and places were released.
func (r *rig) nothingKept() {
	r.t.Helper()
	r.Wait()
	if taken := r.s.shares.Taken(); taken != (share.Amounts{}) {
		r.t.Errorf("%v are taken", taken)
	}
}

// Requests take memory until their handlers have returned. A client that sends ever more is
// refused, and others are not.
func TestRequestsAreBoundedInBytes(t *testing.T) {
	const each, requests, limit = 60 << 10, 200, 8 << 20
	var release chan struct{}
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10, Memory: limit}}, func(s *Server) {
		release = make(chan struct{})
		handleEcho(s)
		HandleRaw(s, stuck, func(context.Context, []byte, []byte) ([]byte, error) { <-release; return nil, nil })
	}, func(r *rig) {
		body := string(make([]byte, each))
		for _, c := range []*raw{r.rawClient(), r.rawClient(), r.rawFrom(r.at("10.0.0.7"))} {
			c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Stuck"))
			for i := range requests {
				c.begin(wire.Header{}, i, 1, body)
			}
			r.Wait()
		}
		if here, _ := r.s.kept(); here > limit+3*share.OwnMemory || here < limit/4 {
			r.t.Errorf("the server keeps %d bytes", here)
		}
		for _, rt := range []*rdma.Runtime{r.Runtime(), r.at("10.0.0.9")} {
			c, err := Dial(r.t.Context(), rt, r.addr)
			if err != nil {
				r.t.Fatal(err)
			}
			if got, err := CallRaw(r.t.Context(), c, echo, []byte(body), nil); err != nil || len(got) != each {
				r.t.Errorf("%d bytes, %v", len(got), err)
			}
			c.Close()
		}
		close(release)
		r.nothingKept()
	})
}

// A request that is refused for lack of memory is answered immediately, and may be repeated.
func TestRequestWithoutMemoryIsRefused(t *testing.T) {
	const each, requests = 60 << 10, 20
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10, Memory: 1 << 20}}, func(s *Server) {
		HandleRaw(s, stuck, func(ctx context.Context, _, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	}, func(r *rig) {
		errs := make(chan error, requests)
		for range requests {
			go func() {
				_, err := CallRaw(r.t.Context(), r.c, stuck, make([]byte, each), nil)
				errs <- err
			}()
		}
		r.Wait()
		refused, begun := len(errs), r.s.InFlight()
		if refused+begun != requests || begun == 0 || refused == 0 {
			r.t.Errorf("%d requests were refused, %d begun", refused, begun)
		}
		for range refused {
			err := <-errs
			if want(r.t, err, ErrOverloaded, FateRefused); !isRetryable(false, err) {
				r.t.Error("may not be repeated")
			}
		}
		r.c.Close()
		r.nothingKept()
	})
}

// Answers that a client does not take are limited, too. The others wait, and none is lost.
func TestAnswersAreBoundedInBytes(t *testing.T) {
	const each, calls, limit = 60 << 10, 1000, 8 << 20
	var release chan struct{}
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10, Memory: limit}}, func(s *Server) {
		release = make(chan struct{})
		handleEcho(s)
		HandleRaw(s, stuck, func(_ context.Context, _, reply []byte) ([]byte, error) {
			<-release
			return append(reply, make([]byte, each)...), nil
		})
	}, func(r *rig) {
		c := r.rawClient()
		c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Stuck"))
		c.begin(wire.Header{}, 0, calls, "")
		r.Wait()
		if n := r.s.InFlight(); n != calls {
			r.t.Fatalf("%d calls are in flight", n)
		}
		close(release)
		r.Wait()
		if here, handed := r.s.kept(); here > limit/2 || handed > ahead.Most.Bytes+each+wire.HeaderLen {
			r.t.Errorf("the server keeps %d bytes, and has handed over %d", here, handed)
		}
		other := r.dial()
		defer other.Close()
		if got, err := CallRaw(r.t.Context(), other, stuck, nil, nil); err != nil || len(got) != each {
			r.t.Errorf("another client: %d bytes, %v", len(got), err)
		}
		if n := r.s.InFlight(); n < calls/2 {
			r.t.Errorf("%d calls are in flight, whose answers wait", n)
		}
		for seen := 0; seen < calls; {
			for data := actortest.Next[*rdma.Received](c.Probe).Data; len(data) > 0; seen++ {
				h, body, rest, err := wire.ParseFrame(data)
				if err != nil || h.Type != wire.FrameReply || len(body) != each {
					r.t.Fatalf("%+v with %d bytes, %v", h, len(body), err)
				}
				data = rest
			}
		}
		r.nothingKept()
	})
}

// A client that reads everything gets the answers of all calls that were executed, however many
// large ones arrive together.
func TestAnswersOfExecutedCallsArrive(t *testing.T) {
	for name, c := range map[string]struct{ calls, each, memory int }{
		"many": {200, 900 << 10, 8 << 20}, "huge": {4, 15 << 20, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var executed atomic.Int64
			most := ClientConfig{MaxMessage: c.each + 1<<10, Memory: c.memory}
			inWorld(t, rigConfig{client: most, server: ServerConfig{MaxMessage: 64 << 10, Memory: c.memory}}, func(s *Server) {
				HandleRaw(s, stuck, func(context.Context, []byte, []byte) ([]byte, error) {
					executed.Add(1)
					return make([]byte, c.each), nil
				})
			}, func(r *rig) {
				errs := make(chan error, c.calls)
				for range c.calls {
					go func() {
						got, err := CallRaw(r.t.Context(), r.c, stuck, nil, nil)
						if err == nil && len(got) != c.each {
							err = fmt.Errorf("%d bytes", len(got))
						}
						errs <- err
					}()
				}
				for range c.calls {
					if err := <-errs; err != nil {
						r.t.Error(err)
					}
				}
				if n := executed.Load(); n != int64(c.calls) {
					r.t.Errorf("%d calls were executed, want %d", n, c.calls)
				}
				r.nothingKept()
			})
		})
	}
}

// An answer waits no longer than its caller, or its connection.
func TestAnswersWaitNoLongerThanTheirCallers(t *testing.T) {
	const each, calls, limit = 60 << 10, 400, 1 << 20
	for name, end := range map[string]func(r *rig, c *raw){
		"a deadline": func(r *rig, _ *raw) { r.Advance(time.Minute) },
		"a cancel": func(_ *rig, c *raw) {
			frames := make([][]byte, calls)
			for i := range frames {
				frames[i] = frame(wire.Header{Type: wire.FrameCancel, Call: wire.CallID(i)}, "")
			}
			c.say(frames...)
		},
		"the connection's end": func(r *rig, c *raw) { r.Disconnect(c.id) },
		"the server's end":     func(r *rig, _ *raw) { r.s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			var release chan struct{}
			inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10, Memory: limit}}, func(s *Server) {
				release = make(chan struct{}) // closed when all have begun
				HandleRaw(s, stuck, func(context.Context, []byte, []byte) ([]byte, error) {
					<-release
					return make([]byte, each), nil
				})
			}, func(r *rig) {
				c := r.rawClient()
				c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Stuck"))
				var h wire.Header
				if name == "a deadline" {
					var unit uint8
					h.Arg, unit = wire.PutTimeout(30 * time.Second)
					h.Flags = unit
				}
				c.begin(h, 0, calls, "")
				r.Wait()
				close(release)
				r.Wait()
				if n := r.s.InFlight(); n < calls/4 {
					r.t.Errorf("%d calls are in flight", n)
				}
				end(r, c)
				r.Wait()
				if n := r.s.InFlight(); n != 0 {
					r.t.Errorf("%d answers still wait", n)
				}
			})
		})
	}
}

// Answers that wait have places. So an address whose answers wait gets only the places that others
// leave, and these still have places.
func TestAnswersThatWaitLeavePlaces(t *testing.T) {
	const each, places = 60 << 10, 64
	var b *blocking
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10, Memory: 1 << 20, MaxCallsInAll: places}}, func(s *Server) {
		b = handleBlock(s)
		HandleRaw(s, stuck, func(context.Context, []byte, []byte) ([]byte, error) { return make([]byte, each), nil })
	}, func(r *rig) {
		for range 4 {
			c := r.rawClient()
			c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Stuck"))
			for i := range 4 {
				c.begin(wire.Header{}, i*places, places, "")
				r.Wait()
			}
		}
		has := r.s.InFlight()
		if has < places/8 || has > places*3/4 {
			r.t.Errorf("the answers of one address have %d of %d places", has, places)
		}
		c, err := Dial(r.t.Context(), r.at("10.0.0.9"), r.addr)
		if err != nil {
			r.t.Fatal(err)
		}
		defer c.Close()
		errs := r.calling(c, 8)
		if n := r.s.InFlight() - has; n != 8 {
			r.t.Errorf("another address has %d of 8 places", n)
		}
		close(b.release)
		for range 8 {
			if err := <-errs; err != nil {
				r.t.Error(err)
			}
		}
	})
}

// The connection is given a few large messages at a time. There their number limits them.
func TestLargeAnswersAreHandedOverByBytes(t *testing.T) {
	const each = 1 << 20
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleRaw(s, echo, func(_ context.Context, _, reply []byte) ([]byte, error) {
			return append(reply, make([]byte, each)...), nil
		})
	}, func(r *rig) {
		p := r.Probe()
		c := &raw{p, r.CreateID(p.PID(), rdma.IDConfig{MaxMessage: 2 * each, Credits: 32})}
		p.Request(c.id, &rdma.Dial{Addr: r.addr, PrivateData: wire.Hello{Version: 1, Window: 64}.Bytes()})
		actortest.Next[*rdma.Established](p)
		c.say(declareEcho)
		c.begin(wire.Header{}, 0, 40, "")
		for range 40 {
			r.Wait()
			if _, handed := r.s.kept(); handed > ahead.Most.Bytes+each+wire.HeaderLen {
				r.t.Fatalf("%d bytes are handed over", handed)
			}
			actortest.Next[*rdma.Received](c.Probe)
		}
		r.nothingKept()
	})
}

// Streams of clients that take nothing wait when their server's memory is short, each with an item
// or two; they go on when their client takes them.
func TestItemsAreBoundedInBytes(t *testing.T) {
	const conns, items, each, limit = 16, 40, 60 << 10, 2 << 20
	var all chan struct{}
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10, Memory: limit}}, func(s *Server) {
		// closed when all have begun, so that no request is refused
		all = make(chan struct{})
		HandleStream(s, blobs, func(_ context.Context, _ *wrapperspb.Int64Value, out *Sender[Bytes]) error {
			<-all
			b := make(Bytes, each)
			for range items {
				if err := out.Send(&b); err != nil {
					return err
				}
			}
			return nil
		})
	}, func(r *rig) {
		var clients []*raw
		for range conns {
			p := r.Probe()
			c := &raw{p, r.CreateID(p.PID(), rdma.IDConfig{MaxMessage: 64 << 10, Credits: 1})}
			p.Request(c.id, &rdma.Dial{Addr: r.addr, PrivateData: wire.Hello{Version: 1, Window: 65_535}.Bytes()})
			actortest.Next[*rdma.Established](p)
			c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Blobs"))
			for i := range 4 {
				c.begin(wire.Header{Flags: wire.FlagStream}, i, 1, "")
			}
			clients = append(clients, c)
		}
		r.Wait()
		close(all)
		r.Wait()
		if here, _ := r.s.kept(); here > limit+conns*(share.OwnMemory+each+wire.HeaderLen) {
			r.t.Errorf("the server keeps %d bytes", here)
		}
		for _, c := range clients {
			for seen, ends := 0, 0; ends < 4; {
				for data := actortest.Next[*rdma.Received](c.Probe).Data; len(data) > 0; seen++ {
					h, _, rest, err := wire.ParseFrame(data)
					if err != nil || h.Type != wire.FrameItem && h.Type != wire.FrameReply {
						r.t.Fatalf("%+v, %v, after %d items", h, err, seen)
					}
					if data = rest; h.Type == wire.FrameReply {
						ends++
					}
				}
				if ends == 4 && seen+1 < 4*items {
					r.t.Errorf("%d items came", seen)
				}
			}
		}
		r.nothingKept()
	})
}

// encoded counts how often it was encoded.
type encoded struct{ n *atomic.Int64 }

func (e *encoded) AppendBinary(b []byte) ([]byte, error) { e.n.Add(1); return append(b, 'x'), nil }
func (e *encoded) UnmarshalBinary([]byte) error          { return nil }

// While an item waits only its handler keeps it. It is not kept in encoded form, too.
func TestItemsThatWaitAreNotEncoded(t *testing.T) {
	m := NewStream[wrapperspb.Int64Value, encoded]("test.Encoded")
	var times, sent atomic.Int64
	inWorld(t, rigConfig{client: ClientConfig{StreamWindow: 1 << 10}}, func(s *Server) {
		HandleStream(s, m, func(_ context.Context, _ *wrapperspb.Int64Value, out *Sender[encoded]) error {
			for {
				if err := out.Send(&encoded{&times}); err != nil {
					return err
				}
				sent.Add(1)
			}
		})
	}, func(r *rig) {
		in, err := Open(r.t.Context(), r.c, m, wrapperspb.Int64(1))
		if err != nil {
			r.t.Fatal(err)
		}
		r.Wait()
		if n, m := times.Load(), sent.Load(); n != m || n == 0 {
			r.t.Errorf("%d items were encoded, %d sent", n, m)
		}
		in.Close()
	})
}

// A client opens only as many streams as half of its memory has room for, each with its window.
func TestStreamsOfAClientAreBoundedInBytes(t *testing.T) {
	cfg := ClientConfig{Memory: 2 << 20, MaxMessage: 64 << 10, StreamWindow: 256 << 10}
	inWorld(t, rigConfig{client: cfg}, func(s *Server) { handleIdle(s) }, func(r *rig) {
		for range 4 {
			in, err := Open(r.t.Context(), r.c, idle, wrapperspb.Int64(1))
			if err != nil {
				r.t.Fatal(err)
			}
			defer in.Close()
		}
		_, err := Open(r.t.Context(), r.c, idle, wrapperspb.Int64(1))
		want(r.t, err, ErrOverloaded, FateNotSent)
	})
}

// Items that exceed their windows share half of a client's memory. A stream for whose item there is
// no room ends; the others, and those after it, are not affected.
func TestItemsBeyondTheWindowsOfAClient(t *testing.T) {
	const item = 100 << 10
	// two items beyond the windows
	cfg := ClientConfig{MaxMessage: 128 << 10, Memory: 512 << 10, StreamWindow: 1 << 10}
	inWorld(t, rigConfig{client: cfg}, func(s *Server) {
		HandleStream(s, blobs, func(ctx context.Context, n *wrapperspb.Int64Value, out *Sender[Bytes]) error {
			b := make(Bytes, n.Value)
			err := out.Send(&b)
			<-ctx.Done()
			return err
		})
	}, func(r *rig) {
		open := func() *Receiver[Bytes] {
			in, err := Open(r.t.Context(), r.c, blobs, wrapperspb.Int64(item))
			if err != nil {
				r.t.Fatal(err)
			}
			r.Wait() // the item is there, and nobody reads it
			return in
		}
		for range 3 { // the memory of streams that have ended is free again
			streams := []*Receiver[Bytes]{open(), open(), open()}
			for i, in := range streams {
				b, err := in.Receive()
				switch {
				case i == 2:
					want(r.t, err, ErrOverloaded, FateUnknown)
				case err != nil || len(*b) != item:
					r.t.Errorf("stream %d: %v", i, err)
				}
				in.Close()
			}
			r.Wait()
		}
		if n := r.c.beyond.Load(); n != 0 {
			r.t.Errorf("%d bytes are kept for no stream", n)
		}
	})
}

// The server learns of the end of a stream for whose item there was no memory, although the client
// has nothing else to send.
func TestStreamBeyondMemoryIsCancelled(t *testing.T) {
	cfg := ClientConfig{MaxMessage: 16 << 10, Memory: 64 << 10, StreamWindow: 1 << 10}
	var cancelled atomic.Int32
	inWorld(t, rigConfig{client: cfg}, func(s *Server) {
		HandleStream(s, blobs, func(ctx context.Context, n *wrapperspb.Int64Value, out *Sender[Bytes]) error {
			b := make(Bytes, n.Value)
			err := out.Send(&b)
			<-ctx.Done()
			cancelled.Add(1)
			return err
		})
	}, func(r *rig) {
		for range 3 {
			in, err := Open(r.t.Context(), r.c, blobs, wrapperspb.Int64(12<<10))
			if err != nil {
				r.t.Fatal(err)
			}
			defer in.Close()
			r.Wait()
		}
		if r.Advance(10 * time.Minute); cancelled.Load() != 1 {
			r.t.Errorf("%d handlers were cancelled, want 1", cancelled.Load())
		}
	})
}
