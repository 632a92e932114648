package rpc

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/share"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Streams that a client opens and does not end are bounded in number and in memory. So are items
// that exceed the window: without memory for one, its stream is refused.
func TestHalfOpenStreams(t *testing.T) {
	const limit, window = 8 << 20, 64 << 10
	var h *held
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10, Memory: limit, StreamWindow: window}}, func(s *Server) {
		handleEcho(s)
		h = handleHeld(s)
	}, func(r *rig) {
		// the refusals of so many have room, although the clients do not read
		const conns, each = 20, 60
		var all []*raw
		for range conns {
			c := r.rawClientOf(2)
			c.Ignore()
			all = append(all, c)
			c.say(declareHeld)
			r.Wait() // the clients have memory for so many messages
			for i := range each {
				id := wire.CallID(i)
				c.say(frame(wire.Header{Type: wire.FrameCall, Flags: wire.FlagSends | wire.FlagStream, Call: id}, ""),
					frame(wire.Header{Type: wire.FrameItem, Call: id}, strings.Repeat("x", 10<<10)))
			}
		}
		r.Wait()
		if taken := r.s.shares.Taken(); taken[share.Memory] > limit || taken[share.Streams] > limit/window+conns {
			r.t.Errorf("%v are taken", taken)
		} else if taken[share.Streams] < limit/window/4 {
			r.t.Errorf("only %v are taken", taken)
		}
		r.good()
		for i := range 60 { // beyond the window of each
			r.Wait()
			for _, c := range all {
				for _, n := range []int{53 << 10, 60 << 10} {
					c.say(frame(wire.Header{Type: wire.FrameItem, Call: wire.CallID(i)}, strings.Repeat("x", n)))
				}
			}
		}
		r.Wait()
		if taken := r.s.shares.Taken(); taken[share.Memory] > limit {
			r.t.Errorf("%v are taken", taken)
		}
		refused := 0
		for ; len(h.ended) > 0; refused++ {
			if err := <-h.ended; !errors.Is(err, ErrOverloaded) {
				r.t.Error(err)
			}
		}
		if refused == 0 {
			r.t.Error("no stream was refused")
		}
		r.good()
		for _, c := range all {
			c.Send(c.id, &rdma.DestroyID{})
		}
		r.Wait()
		r.nothingKept()
	})
}

// If a client confirms no parts, its large answers wait, within its part of the memory, and its
// small ones do not. Other clients are not affected.
func TestClientThatConfirmsNothing(t *testing.T) {
	const each, limit = 60 << 10, 8 << 20
	var handled atomic.Int64
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 64 << 10, Memory: limit}}, func(s *Server) {
		handleEcho(s)
		HandleRaw(s, stuck, func(context.Context, []byte, []byte) ([]byte, error) {
			handled.Add(1)
			return make([]byte, each), nil
		})
	}, func(r *rig) {
		c := r.rawClientOf(2)
		c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Stuck"), frame(wire.Header{Type: wire.FrameDeclare, Number: 1}, "test.Echo"))
		for i := range 10 {
			c.say(frame(wire.Header{Type: wire.FrameCall, Call: wire.CallID(i)}, ""))
		}
		c.say(frame(wire.Header{Type: wire.FrameCall, Number: 1, Call: 500}, "small"))
		parts := 0
		for {
			h, body := c.answer(r.t)
			if h.Type == wire.FrameReply && h.Call == 500 {
				break
			}
			parts += len(body)
		}
		if parts > cutAhead+pieceBytes {
			r.t.Errorf("%d bytes of parts were sent before the small answer", parts)
		}
		c.Ignore()
		for i := range 400 {
			c.say(frame(wire.Header{Type: wire.FrameCall, Call: wire.CallID(10 + i)}, ""))
		}
		r.Wait()
		if taken := r.s.shares.Taken(); taken[share.Memory] > limit {
			r.t.Errorf("%v are taken", taken)
		}
		if n := handled.Load(); n < 20 { // how many depends on the client, which receives
			r.t.Errorf("%d handlers were called", n)
		}
		r.good()
		c.Send(c.id, &rdma.DestroyID{})
		r.Wait()
		r.nothingKept()
	})
}

// A server that grants no window stops its own stream, whose deadline ends it.
func TestServerWithoutAWindow(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		far := w.Host("mem1", there)
		server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Serve{Addr: there + ":7471"})
			case *rdma.ConnectRequest:
				ctx.Respond(&rdma.Accept{PrivateData: wire.Hello{Version: 1, Latest: 2, Calls: 2}.Bytes()})
			}
		}, far.OnLoop()))
		w.Wait()
		client, err := Dial(w.T().Context(), w.Runtime(), there+":7471")
		if err != nil {
			w.T().Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.T().Context(), time.Second)
		defer cancel()
		d, err := OpenBidiStream(ctx, client, talk)
		if err != nil {
			w.T().Fatal(err)
		}
		want(w.T(), d.Send(&Bytes{1}), ErrDeadline, FateUnknown)
		client.Close()
		w.System().Root.Stop(server)
	})
}

// A server that begins the answers of many calls, and ends none, fills no more than half of the
// client's memory. The calls without memory fail, and their servers learn of it. The same applies
// to clients' streams.
func TestAnswersInPartsAreBounded(t *testing.T) {
	t.Run("call", func(t *testing.T) {
		boundAnswers(t, func(ctx context.Context, c *Client) error {
			_, err := CallRaw(ctx, c, echo, nil, nil)
			return err
		})
	})
	t.Run("client stream", func(t *testing.T) {
		boundAnswers(t, func(ctx context.Context, c *Client) error {
			u, err := OpenClientStream(ctx, c, sum)
			if err != nil {
				return err
			}
			_, err = u.Receive()
			return err
		})
	})
}

// boundAnswers is TestAnswersInPartsAreBounded for calls that call makes.
func boundAnswers(t *testing.T, call func(context.Context, *Client) error) {
	const calls, part, memory = 64, 60 << 10, 4 << 20
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		far := w.Host("mem1", there)
		cancels := 0
		server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Serve{Addr: there + ":7471"})
			case *rdma.ConnectRequest:
				ctx.Respond(&rdma.Accept{PrivateData: wire.Hello{Version: 1, Latest: 2, Calls: 2 * calls}.Bytes()})
			case *rdma.Received:
				for b := m.Data; len(b) > 0; {
					h, _, rest, err := wire.ParseFrame(b)
					if err != nil {
						w.T().Error(err)
						return
					}
					switch b = rest; h.Type {
					case wire.FrameCall:
						ctx.Respond(rdma.NewSend(frame(wire.Header{Type: wire.FramePart, Call: h.Call}, strings.Repeat("x", part))))
					case wire.FrameCancel:
						cancels++
					}
				}
			}
		}, far.OnLoop()))
		w.Wait()
		c, err := Dial(w.T().Context(), w.Runtime(), there+":7471", ClientConfig{MaxMessage: 1 << 20, Memory: memory, StreamWindow: 1 << 10})
		if err != nil {
			w.T().Fatal(err)
		}
		ended := make(chan error, calls)
		for range calls {
			go func() { ended <- call(w.T().Context(), c) }()
		}
		w.Wait()
		const fit = memory / 2 / part
		if n := len(ended); n != calls-fit || cancels != n {
			w.T().Errorf("%d of %d calls have failed, and %d were cancelled; %d have room", n, calls, cancels, fit)
		}
		for len(ended) > 0 {
			want(w.T(), <-ended, ErrOverloaded, FateAnswered)
		}
		if n := c.beyond.Load(); n != fit*part {
			w.T().Errorf("%d bytes are kept", n)
		}
		c.Close()
		if n := c.beyond.Load(); n != 0 {
			w.T().Errorf("%d bytes are kept for no call", n)
		}
		w.System().Root.Stop(server)
	})
}
