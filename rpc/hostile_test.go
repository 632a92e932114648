package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// raw is a client, or a server, that puts its frames together by hand.
type raw struct {
	*actortest.Probe
	id *actor.PID
}

// rawClient connects to the rig's server.
func (r *rig) rawClient() *raw {
	r.t.Helper()
	p := r.Probe()
	c := &raw{p, r.CreateID(p.PID())}
	p.Request(c.id, &rdma.Dial{Addr: r.addr, PrivateData: hello{version: 1, window: 64}.put()})
	actortest.Next[*rdma.Established](p)
	return c
}

func (c *raw) say(frames ...[]byte) { c.Send(c.id, rdma.NewSendParts(frames...)) }

// frame is one on the wire.
func frame(h header, body string) []byte {
	h.length = uint32(len(body))
	b := make([]byte, headerLen, headerLen+len(body))
	h.put(b)
	return append(b, body...)
}

// answer is the next frame that comes.
func (c *raw) answer(t *testing.T) (header, string) {
	t.Helper()
	h, body, rest, err := parseFrame(actortest.Next[*rdma.Received](c.Probe).Data)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%v, and %d bytes are left", err, len(rest))
	}
	return h, string(body)
}

var declareEcho = frame(header{typ: frameDeclare}, "test.Echo")

func TestHostileClient(t *testing.T) {
	long := frame(header{typ: frameCall}, "")
	binary.BigEndian.PutUint32(long[4:], 1<<31)
	for name, frames := range map[string][][]byte{
		"a header that is cut off":       {make([]byte, headerLen-1)},
		"a body that is cut off":         {long},
		"no type":                        {frame(header{}, "")},
		"an unknown type":                {frame(header{typ: 200}, "")},
		"a server's frame":               {frame(header{typ: frameReply}, "")},
		"a method declared twice":        {declareEcho, declareEcho},
		"a method declared out of order": {frame(header{typ: frameDeclare, number: 1}, "x")},
		"a method without a name":        {frame(header{typ: frameDeclare}, "")},
		"a name that is too long":        {frame(header{typ: frameDeclare}, strings.Repeat("x", 256))},
		"a slot that is taken": {
			frame(header{typ: frameDeclare}, "test.Block"), frame(header{typ: frameCall, call: 7}, ""), frame(header{typ: frameCall, call: 7}, ""),
		},
		"a window for a call": {
			frame(header{typ: frameDeclare}, "test.Block"), frame(header{typ: frameCall, call: 7}, ""),
			frame(header{typ: frameWindow, call: 7, arg: 1}, ""),
		},
		"a window without end": {
			frame(header{typ: frameDeclare}, "test.Count"), frame(header{typ: frameCall, flags: flagStream, call: 7}, "\x08\xff\xff\xff\xff\x07"),
			frame(header{typ: frameWindow, call: 7, arg: 1 << 31}, ""),
		},
		"garbage": {bytes.Repeat([]byte{0xa5}, 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				handleEcho(s)
				handleBlock(s)
				handleCount(s)
			}, func(r *rig) {
				c := r.rawClient()
				c.say(frames...)
				for {
					if e := actortest.Next[rdma.Event](c.Probe); e.Kind() == (&rdma.Closed{}).Kind() {
						break
					}
				}
				r.Wait()
				if n := r.s.InFlight(); n != 0 {
					r.t.Errorf("%d calls are still in flight", n)
				}
				r.good()
				if got, err := CallRaw(r.t.Context(), r.c, echo, []byte("old"), nil); err != nil || string(got) != "old" {
					r.t.Error(got, err)
				}
			})
		})
	}
}

// What is wrong with one call is that call's business.
func TestCallsThatAreWrong(t *testing.T) {
	metadata := func(b string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(b)))) + b }
	for name, c := range map[string]struct {
		call header
		body string
		code Code
		want string // of a reply
	}{
		"an undeclared method":          {call: header{number: 1}, code: CodeUnknownMethod},
		"a stream that is none":         {call: header{flags: flagStream}, code: CodeUnknownMethod},
		"a slot beyond the limit":       {call: header{call: 4}, code: CodeOverloaded},
		"metadata that is cut off":      {call: header{flags: flagMetadata}, body: "\x00", code: CodeBadMessage},
		"metadata that is too long":     {call: header{flags: flagMetadata}, body: "\xff\xffx", code: CodeBadMessage},
		"a key without a value":         {call: header{flags: flagMetadata}, body: metadata("\x01k"), code: CodeBadMessage},
		"an empty key":                  {call: header{flags: flagMetadata}, body: metadata("\x00\x00\x00"), code: CodeBadMessage},
		"a value that is too long":      {call: header{flags: flagMetadata}, body: metadata("\x01k\x00\x09v"), code: CodeBadMessage},
		"metadata, and flags we ignore": {call: header{flags: flagMetadata | 0x80}, body: metadata("\x01k\x00\x01v") + "q", want: "q"},
		"no time at all left":           {call: header{arg: 1}, body: "in time", want: "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{server: []ServerOption{WithMaxCalls(4)}}, handleEcho, func(r *rig) {
				p := r.rawClient()
				c.call.typ = frameCall
				p.say(declareEcho, frame(c.call, c.body))
				h, body := p.answer(r.t)
				switch {
				case c.code != 0 && (h.typ != frameError || Code(h.number) != c.code || h.flags&flagRefused == 0 || h.call != c.call.call):
					r.t.Errorf("answered with %+v %q", h, body)
				case c.code == 0 && (h.typ != frameReply || body != c.want):
					r.t.Errorf("answered with %+v %q", h, body)
				}
				p.say(frame(header{typ: frameCancel, call: 3}, ""), frame(header{typ: frameWindow, call: 99}, ""), // of nothing
					frame(header{typ: frameCall, call: 2}, "still"))
				if h, body := p.answer(r.t); h.typ != frameReply || h.call != 2 || body != "still" {
					r.t.Errorf("answered with %+v %q", h, body)
				}
			})
		})
	}
}

// The bytes of a call say how long its handler may take, and nothing of what the caller's clock shows: without a cancel the server's own
// clock ends it.
func TestDeadlineOfTheServersOwn(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		for _, c := range []header{{arg: 250_000}, {arg: 250, flags: flagMillis}} {
			p := r.rawClient()
			begin := r.Elapsed()
			c.typ, c.call = frameCall, 5
			p.say(frame(header{typ: frameDeclare}, "test.Block"), frame(c, ""))
			h, _ := p.answer(r.t)
			d := r.Elapsed() - begin
			if h.typ != frameError || Code(h.number) != CodeDeadline || h.flags&flagRefused != 0 || d != 250*time.Millisecond {
				r.t.Errorf("%+v after %v", h, d)
			}
			if err := <-b.ended; !errors.Is(err, context.DeadlineExceeded) {
				r.t.Error(err)
			}
		}
	})
}

// A client that asks and does not listen has its requests left where they are; nobody else notices.
func TestClientThatNeverReads(t *testing.T) {
	handled := make(chan struct{}, 1<<16)
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
			handled <- struct{}{}
			if len(q) > 0 {
				return append(reply, q...), nil
			}
			return append(reply, make([]byte, 32<<10)...), nil
		}, OnLoop())
	}, func(r *rig) {
		p := r.rawClient()
		p.Ignore() // there is no room for most of it
		p.say(declareEcho)
		const each, messages = 10, 400
		for i := range messages {
			var frames [][]byte
			for n := range each {
				frames = append(frames, frame(header{typ: frameCall, call: callID(i%100*each + n)}, ""))
			}
			p.say(frames...)
		}
		r.Wait()
		// The peer's credits, our messages ahead of them, what waits in the connection, and what is over the high water.
		if n, most := len(handled), (32+aheadMax)+highWater/(32<<10)+1; n > most || n < 32 {
			r.t.Errorf("%d requests were answered to nobody, want at most %d", n, most)
		}
		r.good()
		p.Send(p.id, &rdma.DestroyID{})
		r.Wait()
	})
}

// Whoever cancels everything costs what they may have in flight, and no more.
func TestClientThatCancelsEverything(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{server: []ServerOption{WithMaxCallsInAll(8)}}, func(s *Server) {
		handleEcho(s)
		b = handleBlock(s)
	}, func(r *rig) {
		p := r.rawClient()
		p.say(frame(header{typ: frameDeclare}, "test.Block"))
		for round := range 50 {
			var frames [][]byte
			for slot := range 16 {
				id := newCallID(slot, uint16(round))
				frames = append(frames, frame(header{typ: frameCall, call: id}, ""), frame(header{typ: frameCancel, call: id}, ""))
			}
			p.say(frames...)
			for answers := 0; answers < 16; {
				for data := actortest.Next[*rdma.Received](p.Probe).Data; len(data) > 0; answers++ {
					var err error
					if _, _, data, err = parseFrame(data); err != nil {
						r.t.Fatal(err)
					}
				}
			}
		}
		r.Wait()
		if n := r.s.InFlight(); n != 0 {
			r.t.Errorf("%d calls are still in flight", n)
		}
		if n := r.s.workers.n; n > 8 {
			r.t.Errorf("%d goroutines", n)
		}
		_ = b
		r.good()
	})
}

// Calls that come together and block do not wait for one another.
func TestCallsOfOneMessageBlockNobody(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		p := r.rawClient()
		frames := [][]byte{frame(header{typ: frameDeclare}, "test.Block")}
		for slot := range 5 {
			frames = append(frames, frame(header{typ: frameCall, call: callID(slot)}, ""))
		}
		p.say(frames...)
		r.Wait()
		if n := len(b.began); n != 5 {
			r.t.Errorf("%d of 5 handlers were called", n)
		}
		close(b.release)
		r.Wait()
		if n := r.s.InFlight(); n != 0 {
			r.t.Errorf("%d calls are still in flight", n)
		}
	})
}

func TestForeignClients(t *testing.T) {
	for name, private := range map[string][]byte{
		"no hello": nil, "another protocol": []byte("GET / HTTP"), "another version": hello{version: 2, window: 64}.put(),
		"no window": hello{version: 1}.put(), "a hello that is cut off": hello{version: 1, window: 64}.put()[:7],
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
				p := r.Probe()
				p.Request(r.CreateID(p.PID()), &rdma.Dial{Addr: r.addr, PrivateData: private})
				e := actortest.Next[*rdma.Rejected](p)
				if h, ok := parseHello(e.PrivateData); !ok || h.version != helloVersion {
					r.t.Errorf("rejected with %x", e.PrivateData)
				}
				actortest.Next[*rdma.Closed](p)
				r.good()
			})
		})
	}
}

func TestHostileServer(t *testing.T) {
	good := hello{version: 1, calls: 2}
	reply := func(h header, body string) []byte { return frame(h, body) }
	for name, c := range map[string]struct {
		frames [][]byte
		is     error
		more   bool // the connection goes on
		stream bool // it is the answer to a stream
	}{
		"garbage":                  {frames: [][]byte{bytes.Repeat([]byte{0xa5}, 100)}, is: unix.EPROTO},
		"a client's frame":         {frames: [][]byte{reply(header{typ: frameCall}, "")}, is: unix.EPROTO},
		"an unknown type":          {frames: [][]byte{reply(header{typ: 99}, "")}, is: unix.EPROTO},
		"a call that there is not": {frames: [][]byte{reply(header{typ: frameReply, call: 77}, "")}, is: unix.EPROTO},
		"an earlier use of a slot": {frames: [][]byte{reply(header{typ: frameReply, call: newCallID(0, 0)}, "")}, is: unix.EPROTO},
		"an item for a call":       {frames: [][]byte{reply(header{typ: frameItem, call: newCallID(0, 1)}, "")}, is: unix.EPROTO},
		"an error that is cut off": {
			frames: [][]byte{reply(header{typ: frameError, number: 1, call: newCallID(0, 1)}, "\x00\x09x")}, is: unix.EPROTO,
		},
		"a code that nobody knows": {
			frames: [][]byte{reply(header{typ: frameError, number: 60_000, call: newCallID(0, 1)}, "\x00\x01x")}, more: true,
		},
		"an item that the window has no room for": {frames: [][]byte{
			frame(header{typ: frameItem, call: newCallID(0, 1)}, strings.Repeat("x", 60<<10)),
			frame(header{typ: frameItem, call: newCallID(0, 1)}, ""),
		}, is: unix.EPROTO, stream: true},
		"an item that just fits": {frames: [][]byte{
			frame(header{typ: frameItem, call: newCallID(0, 1)}, "x"), frame(header{typ: frameReply, call: newCallID(0, 1)}, ""),
		}, more: true, stream: true},
		"an answer": {frames: [][]byte{reply(header{typ: frameReply, call: newCallID(0, 1)}, "")}, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, func(w *actortest.World) {
				far := w.Host("mem1", there)
				server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch m := ctx.Message().(type) {
					case *actor.Started:
						ctx.Send(far.CreateID(ctx.Self()), &rdma.Serve{Addr: there + ":7471"})
					case *rdma.ConnectRequest:
						ctx.Respond(&rdma.Accept{PrivateData: good.put()})
					case *rdma.Received:
						if bytes.Contains(m.Data, []byte("test.")) {
							for _, f := range c.frames {
								ctx.Respond(rdma.NewSend(f))
							}
						}
					}
				}, far.OnLoop()))
				w.Wait()
				client, err := Dial(w.T().Context(), w.Runtime(), there+":7471", WithStreamWindow(32<<10))
				if err != nil {
					w.T().Fatal(err)
				}
				if c.stream {
					var in *Receiver[Bytes]
					if in, err = Open(w.T().Context(), client, blobs, nil); err != nil {
						w.T().Fatal(err)
					}
					w.Wait() // nobody reads before all is there
					for _, err = range in.All() {
					}
				} else {
					_, err = CallRaw(w.T().Context(), client, echo, nil, nil)
				}
				if c.is != nil && !errors.Is(err, c.is) {
					w.T().Errorf("%v, want %v", err, c.is)
				}
				if w.Wait(); c.more != (client.link != nil) {
					w.T().Errorf("there is a connection: %v", client.link != nil)
				}
				client.Close()
				w.System().Root.Stop(server)
			})
		})
	}
}

// The same answer twice is one answer too many, whether or not the slot has a new call.
func TestDuplicateReply(t *testing.T) {
	actortest.Run(t, func(w *actortest.World) {
		far := w.Host("mem1", there)
		server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(far.CreateID(ctx.Self()), &rdma.Serve{Addr: there + ":7471"})
			case *rdma.ConnectRequest:
				ctx.Respond(&rdma.Accept{PrivateData: hello{version: 1, calls: 2}.put()})
			case *rdma.Received: // the second call of the slot, too, gets the answer to the first
				ctx.Respond(rdma.NewSend(frame(header{typ: frameReply, call: newCallID(0, 1)}, "first")))
			}
		}, far.OnLoop()))
		w.Wait()
		client, err := Dial(w.T().Context(), w.Runtime(), there+":7471")
		if err != nil {
			w.T().Fatal(err)
		}
		if got, err := CallRaw(w.T().Context(), client, echo, nil, nil); err != nil || string(got) != "first" {
			w.T().Error(got, err)
		}
		_, err = CallRaw(w.T().Context(), client, echo, nil, nil)
		want(w.T(), err, unix.EPROTO, FateDelivered)
		client.Close()
		w.System().Root.Stop(server)
	})
}

func TestForeignServers(t *testing.T) {
	for name, c := range map[string]struct {
		answer rdma.Command
		is     error
	}{
		"no hello":                 {&rdma.Accept{}, ErrForeignPeer},
		"another protocol":         {&rdma.Accept{PrivateData: []byte("HTTP/1.1 200")}, ErrForeignPeer},
		"another version":          {&rdma.Accept{PrivateData: hello{version: 9, calls: 1}.put()}, ErrVersion},
		"it rejects us as too new": {&rdma.Reject{PrivateData: hello{version: 9, calls: 1}.put()}, ErrVersion},
		"it drains":                {&rdma.Reject{PrivateData: hello{version: 1}.put()}, ErrDraining},
		"a stranger's no":          {&rdma.Reject{PrivateData: []byte("no")}, unix.ECONNREFUSED},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, func(w *actortest.World) {
				far := w.Host("mem1", there)
				server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch ctx.Message().(type) {
					case *actor.Started:
						ctx.Send(far.CreateID(ctx.Self()), &rdma.Serve{Addr: there + ":7471"})
					case *rdma.ConnectRequest:
						ctx.Respond(c.answer)
					}
				}, far.OnLoop()))
				w.Wait()
				if _, err := Dial(w.T().Context(), w.Runtime(), there+":7471"); !errors.Is(err, c.is) {
					w.T().Errorf("%v, want %v", err, c.is)
				}
				w.System().Root.Stop(server)
			})
		})
	}
}
