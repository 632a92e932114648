package rpc

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// The loop copies small messages. It leaves large ones in the memory that they came in, for the
// goroutines that use them.
func TestTheLoopCopiesWhatIsSmall(t *testing.T) {
	for n, onLoop := range map[int]bool{100: true, copyOnLoop: true, copyOnLoop + 1: false} {
		b := make([]byte, n)
		m := &rdma.Received{Data: b}
		request := &serverCall{}
		if request.body.retainMessage(m, b) {
			request.copyRequest()
		}
		if copied := &request.body.b[0] != &b[0]; copied != onLoop {
			t.Errorf("a request of %d bytes is copied on the loop: %v", n, copied)
		}
		request.ownRequest()
		if &request.body.b[0] == &b[0] || len(request.body.b) != n || request.body.retained != nil {
			t.Errorf("a request of %d bytes is its handler's in memory of the connection", n)
		}
		reply := &clientCall{}
		if reply.body.retainMessage(m, b) {
			reply.copyReply()
		}
		if copied := len(reply.reply) == n; copied != onLoop {
			t.Errorf("an answer of %d bytes is copied on the loop: %v", n, copied)
		}
		reply.ownReply()
		if len(reply.reply) != n || reply.body.retained != nil {
			t.Errorf("an answer of %d bytes came as one of %d", n, len(reply.reply))
		}
		// as it is before Open returns: the loop may have the first item sooner
		items := (&Client{rt: new(rdma.Runtime), cfg: ClientConfig{MaxMessage: 1 << 20}.withDefaults()}).newStream(&method{})
		if _, err := items.itemLocked(m, 0, b, false); err != nil {
			t.Fatal(err)
		}
		if copied := len(items.large) == 0; copied != onLoop {
			t.Errorf("an item of %d bytes is copied on the loop: %v", n, copied)
		} else if !copied {
			if got, err := items.takeLanded(); err != nil || len(got) != n {
				t.Errorf("a large item came as one of %d bytes: %v", len(got), err)
			}
		}
	}
}

var largeStream = NewStream[Bytes, Bytes]("test.Large")

// item returns the i-th of a stream: some are large.
func item(i int) Bytes { return bytes.Repeat([]byte{byte(i)}, 1+i%3*(copyOnLoop/2+10)) }

// Large requests, answers and items arrive whole and in order. There is little memory for them, and
// it is released, also by requests that have expired and by streams that are not read.
func TestLargeMessagesGiveTheirMemoryBack(t *testing.T) {
	const memory, most, size, items = 4 << 20, 1 << 20, 900 << 10, 30
	cfg := rigConfig{
		world:  actortest.Config{Runtime: rdma.Config{Limits: rdma.Limits{ReceiveMemory: memory}}},
		server: ServerConfig{MaxMessage: most, Credits: 32}, client: ClientConfig{MaxMessage: most, Credits: 32},
	}
	ended := make(chan error, 1)
	inWorld(t, cfg, func(s *Server) {
		handleEcho(s)
		HandleStream(s, largeStream, func(_ context.Context, _ *Bytes, out *Sender[Bytes]) error {
			for i := range items {
				b := item(i)
				if err := out.Send(&b); err != nil {
					ended <- err
					return err
				}
			}
			return nil
		})
	}, func(r *rig) {
		q := bytes.Repeat([]byte("large"), size/5)
		for range 3 * memory / size {
			if got, err := CallRaw(r.t.Context(), r.c, echo, q, nil); err != nil || !bytes.Equal(got, q) {
				r.t.Fatalf("%d bytes: %v", len(got), err)
			}
		}
		unread := make([]*Receiver[Bytes], 8)
		for i := range unread {
			var err error
			if unread[i], err = Open(r.t.Context(), r.c, largeStream, &Bytes{}); err != nil {
				r.t.Fatal(err)
			}
		}
		r.Wait()
		if got, err := CallRaw(r.within(time.Minute), r.c, echo, q, nil); err != nil || !bytes.Equal(got, q) {
			r.t.Fatalf("beside streams that nobody reads: %d bytes: %v", len(got), err)
		}
		n := 0
		for got, err := range unread[0].All() {
			if err != nil || !bytes.Equal(*got, item(n)) {
				r.t.Fatalf("item %d: %v", n, err)
			}
			n++
		}
		if n != items {
			r.t.Errorf("%d items of %d", n, items)
		}
		for _, u := range unread[1:] {
			u.Close()
			<-ended
		}
		for range 3 * memory / size {
			if _, err := CallRaw(r.t.Context(), r.c, echo, q, nil); err != nil {
				r.t.Fatal(err)
			}
		}
	})
}

// A large answer for an actor is decoded on a goroutine, and comes.
func TestLargeAnswerForAnActor(t *testing.T) {
	m := NewMethod[Bytes, Bytes]("test.LargeGo")
	big := bytes.Repeat([]byte("x"), 200<<10)
	cfg := rigConfig{client: ClientConfig{MaxMessage: 1 << 20, Credits: 32}}
	inWorld(t, cfg, func(s *Server) {
		Handle(s, m, func(context.Context, *Bytes) (*Bytes, error) { return (*Bytes)(&big), nil })
	}, func(r *rig) {
		do, answers := asks(r)
		for range 3 {
			do(func(ctx actor.Context) { Go(ctx, r.c, m, &Bytes{}) })
			got := (<-answers).(*Reply[Bytes])
			if got.Err != nil || !bytes.Equal(*got.Value, big) {
				r.t.Error(got.Err)
			}
		}
	})
}

// When a connection has no numbers left, calls of a further method fail, and no others.
func TestMethodsWithoutNumber(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		if _, err := CallRaw(r.t.Context(), r.c, echo, []byte("first"), nil); err != nil {
			r.t.Fatal(err)
		}
		l := r.c.link()
		for i := range wire.MaxMethods - 1 {
			m := &method{name: fmt.Sprint("test.", i), index: i + 100_000, req: bytesCodec, rep: bytesCodec}
			_, err := r.c.callRaw(r.t.Context(), m, nil, nil)
			want(r.t, err, ErrUnknownMethod, FateRefused)
			if r.t.Failed() {
				return
			}
		}
		m := &method{name: "test.beyond", index: 200_000, req: bytesCodec, rep: bytesCodec}
		for range 2 {
			_, err := r.c.callRaw(r.t.Context(), m, nil, nil)
			want(r.t, err, ErrUnknownMethod, FateNotSent)
		}
		if got, err := CallRaw(r.t.Context(), r.c, echo, []byte("last"), nil); err != nil || string(got) != "last" || r.c.link() != l {
			r.t.Errorf("the connection has not gone on: %q, %v", got, err)
		}
	})
}

// The same with a client that does not count its methods.
func TestDeclaresTooManyMethods(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		c := r.rawClient()
		for i := range wire.MaxMethods + 2 {
			name := "test.Nowhere"
			if i == 0 {
				name = "test.Echo"
			}
			c.say(frame(wire.Header{Type: wire.FrameDeclare, Number: uint16(i)}, name))
			r.Wait()
		}
		c.say(frame(wire.Header{Type: wire.FrameCall, Number: wire.MaxMethods + 1}, ""))
		if h, _ := c.answer(r.t); h.Type != wire.FrameError || Code(h.Number) != CodeUnknownMethod || h.Flags != wire.FlagRefused {
			r.t.Errorf("a call of the method too many was answered with %+v", h)
		}
		c.say(frame(wire.Header{Type: wire.FrameCall, Call: 1}, "q"))
		if h, got := c.answer(r.t); h.Type != wire.FrameReply || got != "q" {
			r.t.Errorf("the first method's with %+v", h)
		}
	})
}
