package rpc

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// announce returns the call frame of a request of n bytes that follows in parts.
func announce(h wire.Header, n int) []byte {
	h.Type = wire.FrameCall
	h.Flags |= wire.FlagFollows
	return frame(h, string(wire.AppendFollows(nil, n)))
}

// part returns a part of a request or an item.
func part(id wire.CallID, body string) []byte {
	return frame(wire.Header{Type: wire.FramePart, Call: id}, body)
}

// requests returns the number of bytes of requests that the server keeps.
func (r *rig) requests() (n int) {
	for _, c := range r.s.connections() {
		c.out.mu.Lock()
		n += c.out.purse.Requests
		c.out.mu.Unlock()
	}
	return n
}

// handledRequests registers a handler of echo that answers with its request, and counts.
func handledRequests(s *Server, n *atomic.Int64, cfg HandlerConfig) {
	HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
		n.Add(1)
		return append(reply, q...), nil
	}, cfg)
}

// Requests in parts reach their handlers whole, whichever goroutine these run on: one part in the
// middle of another's, empty ones, and all in one message. Parts of calls that do not exist have
// crossed an answer, and change nothing.
func TestRequestsInParts(t *testing.T) {
	big := NewRawMethod("test.Big", MethodConfig{MaxRequest: 1 << 20})
	for name, cfg := range map[string]HandlerConfig{"goroutine": {}, "loop": {OnLoop: true}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				handledRequests(s, new(atomic.Int64), cfg)
				HandleRaw(s, big, echoBytes, cfg)
			}, func(r *rig) {
				c := r.rawClientOf(3)
				c.say(declareEcho, part(99, "nothing"), announce(wire.Header{Call: 1}, 6), part(1, "abc"),
					announce(wire.Header{Call: 2}, 4), part(2, "12"), part(1, ""), part(1, "def"), part(2, "34"))
				got := map[wire.CallID]string{}
				for len(got) < 2 {
					eachFrame(r.t, actortest.Next[*rdma.Received](c.Probe).Data, func(b []byte) {
						h, body, _, _ := wire.ParseFrame(b)
						got[h.Call] = string(body)
					})
				}
				if got[1] != "abcdef" || got[2] != "1234" {
					r.t.Errorf("the handlers have got %v", got)
				}
				c.say(part(1, "late"), announce(wire.Header{Call: 3}, 0))
				if h, body := c.answer(r.t); h.Call != 3 || h.Type != wire.FrameReply || body != "" {
					r.t.Errorf("an empty request: %+v %q", h, body)
				}
				q := bytes.Repeat([]byte("large"), 100_000/5)
				if reply, err := CallRaw(r.t.Context(), r.c, big, q, nil); err != nil || !bytes.Equal(reply, q) {
					r.t.Errorf("%d bytes, %v", len(reply), err)
				}
				r.quiet()
			})
		})
	}
}

// A request that is too large, or announced wrongly, is refused with the announcement: its parts
// are not needed, and not kept.
func TestAnnouncedRequestIsRefused(t *testing.T) {
	small := NewRawMethod("test.Small", MethodConfig{MaxRequest: 20})
	for name, c := range map[string]struct {
		method string
		h      wire.Header
		frame  func(h wire.Header) []byte
		code   Code
		text   string
	}{
		"beyond MaxMessage":  {method: "test.Echo", code: CodeTooLarge, text: "ServerConfig.MaxMessage there: 65536"},
		"beyond MaxRequest":  {method: "test.Small", frame: func(h wire.Header) []byte { return announce(h, 21) }, code: CodeTooLarge, text: "takes 20"},
		"of an OnLoop":       {method: "test.Block", frame: func(h wire.Header) []byte { return announce(h, 65<<10) }, code: CodeTooLarge, text: "OnLoop"},
		"without its length": {method: "test.Echo", frame: func(h wire.Header) []byte { h.Flags, h.Type = wire.FlagFollows, wire.FrameCall; return frame(h, "abc") }, code: CodeBadMessage},
		"of a client stream": {method: "test.Sum", h: wire.Header{Flags: wire.FlagSends}, code: CodeBadMessage},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10}}, func(s *Server) {
				handleEcho(s)
				handleSum(s)
				HandleRaw(s, small, echoBytes)
				HandleRaw(s, block, echoBytes, HandlerConfig{OnLoop: true})
			}, func(r *rig) {
				p := r.rawClientOf(3)
				c.h.Call = 3
				begin := announce(c.h, 1<<32-1)
				if c.frame != nil {
					begin = c.frame(c.h)
				}
				p.say(frame(wire.Header{Type: wire.FrameDeclare}, c.method), begin, part(3, "x"))
				h, body := p.answer(r.t)
				if h.Type != wire.FrameError || Code(h.Number) != c.code || h.Flags&wire.FlagRefused == 0 || !strings.Contains(body, c.text) {
					r.t.Errorf("answered with %+v %q", h, body)
				}
				r.nothingKept()
			})
		})
	}
}

// A request whose parts do not come ends with its deadline, its cancellation or its connection:
// refused, and nothing of it is kept. Parts that are on their way then change nothing.
func TestRequestWhosePartsDoNotCome(t *testing.T) {
	for name, c := range map[string]struct {
		arg  uint32
		end  func(r *rig, c *raw)
		code Code // of the answer; 0: there is none
	}{
		"deadline":   {250_000, func(r *rig, _ *raw) { r.Advance(time.Second) }, CodeDeadline},
		"cancel":     {0, func(_ *rig, c *raw) { c.say(frame(wire.Header{Type: wire.FrameCancel, Call: 1}, ""), part(1, "late")) }, CodeCanceled},
		"connection": {0, func(r *rig, c *raw) { r.Disconnect(c.id) }, 0},
		"server":     {0, func(r *rig, _ *raw) { r.s.Close() }, 0},
	} {
		for on, cfg := range map[string]HandlerConfig{"goroutine": {}, "loop": {OnLoop: true}} {
			t.Run(name+" "+on, func(t *testing.T) {
				var handled atomic.Int64
				inWorld(t, rigConfig{}, func(s *Server) { handledRequests(s, &handled, cfg) }, func(r *rig) {
					p := r.rawClientOf(3)
					p.say(declareEcho, announce(wire.Header{Call: 1, Arg: c.arg}, 60<<10), part(1, strings.Repeat("x", 10<<10)))
					r.Wait()
					if n := r.requests(); n != 60<<10 || r.s.InFlight() != 0 {
						r.t.Errorf("%d bytes are kept, %d calls in flight", n, r.s.InFlight())
					}
					c.end(r, p)
					if c.code != 0 {
						if h, _ := p.answer(r.t); h.Type != wire.FrameError || Code(h.Number) != c.code || h.Flags&wire.FlagRefused == 0 {
							r.t.Errorf("answered with %+v", h)
						}
						p.say(part(1, "later"), announce(wire.Header{Call: 1}, 2), part(1, "ok"))
						if h, body := p.answer(r.t); h.Type != wire.FrameReply || body != "ok" {
							r.t.Errorf("the next call: %+v %q", h, body)
						}
						handled.Add(-1)
					}
					r.nothingKept()
					if n, m := r.s.InFlight(), handled.Load(); n+int(m) != 0 {
						r.t.Errorf("%d calls are in flight, %d were handled", n, m)
					}
				})
			})
		}
	}
}

// handReader is a server of version 3 that a test plays by hand.
type handReader struct {
	*actortest.World
	got    [][]byte // frames that have come, one each
	quiet  bool     // does not confirm parts
	conn   *actor.PID
	server *actor.PID
	c      *Client
}

// inHand runs test with a client and the server that it is connected to.
func inHand(t *testing.T, cfg ClientConfig, test func(h *handReader)) {
	t.Helper()
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		h := &handReader{World: w}
		far := w.Host("mem1", there)
		h.server = w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{MaxMessage: 4 << 20}), &rdma.Serve{Addr: there + ":7471"})
			case *rdma.ConnectRequest:
				h.conn = ctx.Sender()
				ctx.Respond(&rdma.Accept{PrivateData: wire.Hello{Version: 1, Latest: 3, Calls: 100, Window: 1024}.Bytes()})
			case *rdma.Received:
				h.read(ctx, m.Data)
			}
		}, far.OnLoop()))
		w.Wait()
		var err error
		if h.c, err = Dial(w.T().Context(), w.Runtime(), there+":7471", cfg); err != nil {
			w.T().Fatal(err)
		}
		test(h)
		h.c.Close()
		w.System().Root.Stop(h.server)
	})
}

func (h *handReader) read(ctx actor.Context, b []byte) {
	unread := 0
	for len(b) > 0 {
		f, body, rest, err := wire.ParseFrame(b)
		if err != nil {
			h.T().Error(err)
			return
		}
		h.got = append(h.got, bytes.Clone(b[:len(b)-len(rest)]))
		if f.Type == wire.FramePart || f.Type == wire.FrameItem && f.Flags&wire.FlagParts != 0 {
			unread += len(body)
		}
		b = rest
	}
	if unread > 0 && !h.quiet {
		ctx.Respond(rdma.NewSend(frame(wire.Header{Type: wire.FrameTaken, Arg: uint32(unread)}, "")))
	}
}

// say sends frames to the client.
func (h *handReader) say(frames ...[]byte) {
	h.System().Root.Send(h.conn, rdma.NewSend(bytes.Join(frames, nil)))
}

// types returns the types of the frames that have come, and the bytes of parts among them.
func (h *handReader) types() (types []wire.FrameType, parts int) {
	for _, b := range h.got {
		f, body, _, _ := wire.ParseFrame(b)
		if types = append(types, f.Type); f.Type == wire.FramePart {
			parts += len(body)
		}
	}
	return types, parts
}

// A small call does not wait for a large request of the same connection, even if the server
// confirms nothing: it waits for cutAhead bytes of it and a part.
func TestSmallCallBesideLargeRequest(t *testing.T) {
	inHand(t, ClientConfig{}, func(h *handReader) {
		h.quiet = true
		ctx, cancel := context.WithCancel(h.T().Context())
		defer cancel()
		ended := make(chan error, 2)
		go func() { _, err := CallRaw(ctx, h.c, echo, huge, nil); ended <- err }()
		h.Wait()
		go func() { _, err := CallRaw(ctx, h.c, block, nil, nil); ended <- err }()
		h.Wait()
		types, parts := h.types()
		if parts > cutAhead+pieceBytes || parts < cutAhead || types[len(types)-1] != wire.FrameCall {
			h.T().Errorf("%v have come, with %d bytes of parts", types, parts)
		}
		h.quiet = false
		h.say(frame(wire.Header{Type: wire.FrameTaken, Arg: uint32(parts)}, ""))
		h.Wait()
		if _, parts = h.types(); parts != len(huge) {
			h.T().Errorf("%d bytes of parts of %d have come", parts, len(huge))
		}
		cancel()
		want(h.T(), <-ended, context.Canceled, FateUnknown)
		want(h.T(), <-ended, context.Canceled, FateUnknown)
	})
}

// When its caller gives up, or the server answers, the rest of a large request is not sent. A
// request of which a part was not sent was not executed.
func TestRestOfARequestIsDropped(t *testing.T) {
	for name, end := range map[string]func(h *handReader, cancel func()){
		"caller": func(_ *handReader, cancel func()) { cancel() },
		"answer": func(h *handReader, _ func()) {
			h.say(frame(wire.Header{Type: wire.FrameError, Flags: wire.FlagRefused, Number: uint16(CodeCanceled), Call: wire.NewCallID(0, 1)}, ""))
		},
		"connection": func(h *handReader, _ func()) { h.Disconnect(h.conn) },
	} {
		t.Run(name, func(t *testing.T) {
			inHand(t, ClientConfig{}, func(h *handReader) {
				h.quiet = true
				ctx, cancel := context.WithCancel(h.T().Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() { _, err := CallRaw(ctx, h.c, echo, huge, nil); ended <- err }()
				h.Wait()
				l := h.c.link()
				end(h, cancel)
				var e *Error
				if err := <-ended; !errors.As(err, &e) || !e.Fate.NotExecuted() {
					h.T().Errorf("the call failed with %v", err)
				}
				h.Wait()
				_, parts := h.types()
				if h.c.link() == l {
					h.say(frame(wire.Header{Type: wire.FrameTaken, Arg: uint32(parts)}, ""))
					h.Wait()
					l.out.mu.Lock()
					if n := l.out.totalLocked(); n != 0 {
						h.T().Errorf("%d bytes are kept", n)
					}
					l.out.mu.Unlock()
				}
				if _, now := h.types(); now != parts || parts > cutAhead+pieceBytes {
					h.T().Errorf("%d bytes of parts were sent, %d of them later", now, now-parts)
				}
			})
		})
	}
}

// The fates of calls are right although parts, which are messages, too, were sent between them:
// what the connection has not sent is not delivered.
func TestFatesBesideLargeRequests(t *testing.T) {
	inHand(t, ClientConfig{}, func(h *handReader) {
		ended := make(chan error, 200)
		call := func(m RawMethod, q []byte) {
			go func() { _, err := CallRaw(h.T().Context(), h.c, m, q, nil); ended <- err }()
			h.Wait()
		}
		call(echo, huge)
		call(block, nil)
		h.Freeze("mem1")
		const more, credits = 90, 32
		for range more {
			call(block, nil)
		}
		h.Advance(2 * time.Minute)
		h.Thaw("mem1")
		fates := map[Fate]int{}
		for range more + 2 {
			var e *Error
			if err := <-ended; errors.As(err, &e) {
				fates[e.Fate]++
			}
		}
		if n := fates[FateDelivered]; n < 1 || n > 2 || fates[FateUnknown] != credits || n+credits+fates[FateNotSent] != more+2 {
			h.T().Errorf("the fates are %v: 2 requests have arrived, and there were %d credits", fates, credits)
		}
	})
}

// A request is counted behind the parts that have overtaken it, because its fate depends on the
// number of its message among all.
func TestNumberOfAnOvertakenRequest(t *testing.T) {
	inHand(t, ClientConfig{}, func(h *handReader) {
		o := &h.c.link().out
		o.mu.Lock()
		o.woken = true // nothing is sent
		o.mu.Unlock()
		ended := make(chan error, 3)
		// the last one is in a second message
		for _, n := range []int{len(huge), gatherBytes / 2, gatherBytes / 2} {
			go func() { _, err := CallRaw(h.T().Context(), h.c, echo, huge[:n], nil); ended <- err }()
			h.Wait()
		}
		o.requestFlush()
		h.Wait()
		types, _ := h.types()
		second := slices.Index(types, wire.FramePart)
		last := second + slices.Index(types[second:], wire.FrameCall)
		o.mu.Lock()
		s := &h.c.link().slots[2]
		if n, want := int(s.number+s.before), 1+last-second+1; n != want || want < 3 {
			h.T().Errorf("its message is number %d, want %d: %v", n, want, types)
		}
		o.mu.Unlock()
		h.c.Close()
		for range 3 {
			<-ended
		}
	})
}

// Also if it is unknown which messages were sent, a request of which a part is here was not
// executed.
func TestFateOfAPartlySentRequest(t *testing.T) {
	inHand(t, ClientConfig{}, func(h *handReader) {
		h.quiet = true
		ended := make(chan error, 2)
		for _, q := range [][]byte{nil, huge} {
			go func() { _, err := CallRaw(h.T().Context(), h.c, echo, q, nil); ended <- err }()
			h.Wait()
		}
		h.System().Root.Stop(h.c.link().out.pid)
		fates := map[Fate]int{}
		for range 2 {
			var e *Error
			if err := <-ended; errors.As(err, &e) {
				fates[e.Fate]++
			}
		}
		if fates[FateNotSent] != 1 || fates[FateUnknown] != 1 {
			h.T().Errorf("the fates are %v", fates)
		}
	})
}

// sendLargeItem opens a stream, and sends an item that is larger than what may be sent ahead.
func (h *handReader) sendLargeItem() *Dialog[Bytes, Bytes] {
	d, err := OpenBidiStream(h.T().Context(), h.c, talk)
	if err != nil {
		h.T().Fatal(err)
	}
	large := Bytes(huge)
	if err := d.Send(&large); err != nil {
		h.T().Fatal(err)
	}
	return d
}

// A large item of a client takes turns, too. The next item and the end wait for it, whoever sends
// them: nothing overtakes it.
func TestLargeItemsOfAClientTakeTurns(t *testing.T) {
	inHand(t, ClientConfig{}, func(h *handReader) {
		h.quiet = true
		d := h.sendLargeItem()
		d.CloseSend()
		h.Wait()
		ended := make(chan error, 1)
		go func() { _, err := CallRaw(h.T().Context(), h.c, block, nil, nil); ended <- err }()
		h.Wait()
		types, parts := h.types()
		if parts > cutAhead+pieceBytes || types[len(types)-1] != wire.FrameCall {
			h.T().Errorf("%v have come, with %d bytes of parts", types, parts)
		}
		h.quiet = false
		h.say(frame(wire.Header{Type: wire.FrameTaken, Arg: uint32(parts)}, ""))
		h.Wait()
		types, _ = h.types()
		if n := len(types); types[n-1] != wire.FrameEnd || types[n-2] != wire.FrameItem || types[n-3] != wire.FramePart {
			h.T().Errorf("%v have come", types)
		}
		d.Close()
		h.c.Close()
		<-ended
	})
}

// Send waits until the pieces of a large item before it were sent, and returns when the stream has
// ended before that.
func TestItemWaitsForALargeOne(t *testing.T) {
	for name, ends := range map[string]bool{"sent": false, "ended": true} {
		t.Run(name, func(t *testing.T) {
			inHand(t, ClientConfig{}, func(h *handReader) {
				h.quiet = true
				d := h.sendLargeItem()
				sent := make(chan error, 1)
				go func() { sent <- d.Send(&Bytes{1}) }()
				h.Wait()
				if len(sent) > 0 {
					h.T().Fatal("an item has overtaken a large one")
				}
				_, parts := h.types()
				if ends {
					d.Close()
					want(h.T(), <-sent, context.Canceled, FateUnknown)
				} else {
					h.quiet = false
					h.say(frame(wire.Header{Type: wire.FrameTaken, Arg: uint32(parts)}, ""))
					if err := <-sent; err != nil {
						h.T().Error(err)
					}
				}
				d.Close()
				h.Wait()
			})
		})
	}
}

// Large requests and items of many callers arrive whole beside small ones, in both directions at a
// time, and leave nothing behind.
func TestLargeMessagesInBothDirections(t *testing.T) {
	cfg := wide
	cfg.server.StreamWindow = 32 << 10
	inWorld(t, cfg, func(s *Server) {
		handleEcho(s)
		handleTalk(s)
	}, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 12 {
			q := bytes.Repeat([]byte{byte(i)}, 1+i*i*7000)
			wg.Go(func() {
				for range 3 {
					if got, err := CallRaw(r.t.Context(), r.c, echo, q, nil); err != nil || !bytes.Equal(got, q) {
						r.t.Errorf("call %d: %d bytes, %v", i, len(got), err)
					}
				}
			})
			wg.Go(func() {
				d, err := OpenBidiStream(r.t.Context(), r.c, talk)
				if err != nil {
					r.t.Error(err)
					return
				}
				go func() {
					for n := range 5 {
						item := Bytes(q[:len(q)/(n+1)])
						if err := d.Send(&item); err != nil {
							r.t.Error(err)
						}
					}
					d.CloseSend()
				}()
				n := 0
				for item, err := range d.All() {
					if n++; err != nil || !bytes.Equal(*item, q[:len(q)/n]) {
						r.t.Errorf("item %d of stream %d: %v", n, i, err)
						return
					}
				}
				if n != 5 {
					r.t.Errorf("%d items of stream %d", n, i)
				}
			})
		}
		wg.Wait()
		r.quiet()
		l := r.c.link()
		l.out.mu.Lock()
		defer l.out.mu.Unlock()
		if n := l.out.totalLocked(); n != 0 {
			r.t.Errorf("%d bytes are kept", n)
		}
		if n := l.out.cuts.ahead; n >= confirmBytes {
			r.t.Errorf("%d bytes of parts are not confirmed", n)
		}
	})
}
