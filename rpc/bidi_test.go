package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

var (
	sum  = NewClientStream[wrapperspb.Int64Value, wrapperspb.Int64Value]("test.Sum")
	talk = NewBidiStream[Bytes, Bytes]("test.Talk")
)

// handleSum adds up what it receives.
func handleSum(s *Server) {
	HandleClientStream(s, sum, func(_ context.Context, in *Receiver[wrapperspb.Int64Value]) (*wrapperspb.Int64Value, error) {
		total := int64(0)
		for q, err := range in.All() {
			if err != nil {
				return nil, err
			}
			total += q.Value
		}
		return wrapperspb.Int64(total), nil
	})
}

// handleTalk sends back what it receives.
func handleTalk(s *Server) {
	HandleBidiStream(s, talk, func(_ context.Context, in *Receiver[Bytes], out *Sender[Bytes]) error {
		for q, err := range in.All() {
			if err != nil {
				return err
			}
			if err := out.Send(q); err != nil {
				return err
			}
		}
		return nil
	})
}

// held is a handler of talk that receives on request, and reports how it ended.
type held struct {
	receive chan struct{}
	got     chan Bytes
	ended   chan error
}

func handleHeld(s *Server) *held {
	h := &held{make(chan struct{}, 1000), make(chan Bytes, 1000), make(chan error, 1000)}
	HandleBidiStream(s, talk, func(ctx context.Context, in *Receiver[Bytes], _ *Sender[Bytes]) (err error) {
		defer func() { h.ended <- err }()
		for {
			select {
			case <-h.receive:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			q, err := in.Receive()
			if err != nil {
				return err
			}
			h.got <- *q
		}
	})
	return h
}

// quiet asserts that nothing of calls is left.
func (r *rig) quiet() {
	r.t.Helper()
	r.Wait()
	if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
		r.t.Errorf("%d and %d calls are still in flight", n, m)
	}
	r.nothingKept()
}

func TestClientStream(t *testing.T) {
	inWorlds(t, handleSum, func(r *rig) {
		for _, n := range []int64{0, 1, 20_000} { // the last one is more than a window
			up, err := OpenClientStream(r.t.Context(), r.c, sum)
			if err != nil {
				r.t.Fatal(err)
			}
			for i := range n {
				if err := up.Send(wrapperspb.Int64(i)); err != nil {
					r.t.Fatal(err)
				}
			}
			if got, err := up.CloseAndReceive(); err != nil || got.Value != n*(n-1)/2 {
				r.t.Errorf("the sum of %d items is %v, %v", n, got, err)
			}
			if err := up.Send(wrapperspb.Int64(1)); !errors.Is(err, io.EOF) {
				r.t.Error(err)
			}
		}
		r.quiet()
	})
}

// Both sides send as fast as they can, small items and such that are cut, and receive them in
// order.
func TestBidiStream(t *testing.T) {
	cfg := rigConfig{client: ClientConfig{MaxMessage: 1 << 20}, server: ServerConfig{MaxMessage: 1 << 20}}
	inWorld(t, cfg, handleTalk, func(r *rig) {
		d, err := OpenBidiStream(r.t.Context(), r.c, talk)
		if err != nil {
			r.t.Fatal(err)
		}
		const items = 300
		item := func(i int) Bytes { return slices.Repeat(Bytes{byte(i)}, 1+i%7*i%5*20_000) }
		go func() {
			for i := range items {
				b := item(i)
				if err := d.Send(&b); err != nil {
					r.t.Error(err)
				}
			}
			d.CloseSend()
			d.CloseSend() // does nothing
			if err := d.Send(&Bytes{}); err == nil {
				r.t.Error("an item was sent behind the end")
			}
		}()
		n := 0
		for got, err := range d.All() {
			if err != nil || !slices.Equal(*got, item(n)) {
				r.t.Fatalf("item %d: %v", n, err)
			}
			n++
		}
		if n != items {
			r.t.Errorf("%d items of %d", n, items)
		}
		r.quiet()
	})
}

// A client may send a window ahead of the handler, and more when the handler has received half.
// Nothing else is delayed.
func TestSlowHandlerStopsItsStreamOnly(t *testing.T) {
	var h *held
	const window, cost = 4 << 10, 100 + wire.HeaderLen
	inWorld(t, rigConfig{server: ServerConfig{StreamWindow: window}}, func(s *Server) {
		handleEcho(s)
		h = handleHeld(s)
	}, func(r *rig) {
		d, err := OpenBidiStream(r.t.Context(), r.c, talk)
		if err != nil {
			r.t.Fatal(err)
		}
		sent := make(chan int, 1000)
		go func() {
			for i := 0; ; i++ {
				b := make(Bytes, 100)
				if d.Send(&b) != nil {
					close(sent)
					return
				}
				sent <- i
			}
		}()
		r.Advance(time.Minute)
		if n := len(sent); n != window/cost+1 {
			r.t.Errorf("%d items were sent to a handler that receives none, %d fit", n, window/cost+1)
		}
		r.good()
		for range window/2/cost + 1 {
			h.receive <- struct{}{}
		}
		if r.Wait(); len(sent) != window/cost+1+window/2/cost+1 {
			r.t.Errorf("%d items were sent after it has received half", len(sent))
		}
		d.Close()
		if err := <-h.ended; !errors.Is(err, context.Canceled) {
			r.t.Error(err)
		}
		r.quiet()
	})
}

// The handler's end is the client's: what the client still sends is dropped, and its Send fails.
func TestHandlerEndsBeforeItsClient(t *testing.T) {
	for name, end := range map[string]error{"answer": nil, "error": errTaken} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				HandleClientStream(s, sum, func(_ context.Context, in *Receiver[wrapperspb.Int64Value]) (*wrapperspb.Int64Value, error) {
					if _, err := in.Receive(); err != nil {
						return nil, err
					}
					return wrapperspb.Int64(7), end
				})
			}, func(r *rig) {
				up, err := OpenClientStream(r.t.Context(), r.c, sum)
				if err != nil {
					r.t.Fatal(err)
				}
				for err == nil {
					err = up.Send(wrapperspb.Int64(1))
				}
				got, err2 := up.CloseAndReceive()
				if end == nil {
					if !errors.Is(err, io.EOF) || err2 != nil || got.Value != 7 {
						r.t.Error(err, got, err2)
					}
				} else {
					want(r.t, err, errTaken, FateAnswered)
					want(r.t, err2, errTaken, FateAnswered)
				}
				r.quiet()
			})
		})
	}
}

// The reason of a cancellation reaches the handler, and the handler's error the client.
func TestReasonOfACancellation(t *testing.T) {
	var h *held
	inWorld(t, rigConfig{}, func(s *Server) { h = handleHeld(s) }, func(r *rig) {
		ctx, cancel := context.WithCancelCause(r.t.Context())
		d, err := OpenBidiStream(ctx, r.c, talk)
		if err != nil {
			r.t.Fatal(err)
		}
		r.Wait()
		cancel(errors.New("the user has left"))
		err = <-h.ended
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeCanceled || e.Message != "the user has left" || !errors.Is(err, context.Canceled) {
			r.t.Errorf("the handler got %v", err)
		}
		_, err = d.Receive()
		want(r.t, err, context.Canceled, FateUnknown)
		want(r.t, d.Send(&Bytes{}), context.Canceled, FateUnknown)
		r.quiet()
	})
}

// If the connection ends, both ends of a stream learn it.
func TestStreamsEndWithTheirConnection(t *testing.T) {
	var h *held
	inWorld(t, rigConfig{}, func(s *Server) { h = handleHeld(s) }, func(r *rig) {
		d, err := OpenBidiStream(r.t.Context(), r.c, talk)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := d.Send(&Bytes{1}); err != nil {
			r.t.Fatal(err)
		}
		h.receive <- struct{}{}
		<-h.got
		h.receive <- struct{}{}
		r.RemoveDevice("mem1")
		if err := <-h.ended; !errors.Is(err, ErrUnavailable) {
			r.t.Errorf("the handler got %v", err)
		}
		_, err = d.Receive()
		want(r.t, err, ErrUnavailable, FateUnknown) // nothing has come back
		want(r.t, d.Send(&Bytes{}), ErrUnavailable, FateUnknown)
		r.Wait()
		r.nothingKept()
	})
}

// An undecodable item ends the stream for the handler. The client is not affected until then.
func TestItemThatDoesNotDecode(t *testing.T) {
	inWorld(t, rigConfig{}, handleSum, func(r *rig) {
		up, err := OpenClientStream(r.t.Context(), r.c, ClientStream[Bytes, Bytes]{newMethod("test.Sum", clientSends, bytesCodec, bytesCodec)})
		if err != nil {
			r.t.Fatal(err)
		}
		if err := up.Send(&Bytes{0xff}); err != nil {
			r.t.Fatal(err)
		}
		_, err = up.CloseAndReceive()
		want(r.t, err, ErrBadMessage, FateAnswered)
		r.quiet()
	})
}

// Headers come before items and answers, trailers with the end, of every kind of call.
func TestHeadersAndTrailers(t *testing.T) {
	unary := NewMethod[Bytes, Bytes]("test.Meta")
	set := func(ctx context.Context, trailer string) {
		for _, v := range []string{"1", "2"} {
			if err := SetHeader(ctx, "h", v); err != nil {
				t.Error(err)
			}
		}
		if err := SetTrailer(ctx, "t", trailer); err != nil {
			t.Error(err)
		}
	}
	inWorld(t, rigConfig{}, func(s *Server) {
		Handle(s, unary, func(ctx context.Context, q *Bytes) (*Bytes, error) {
			set(ctx, "call")
			if len(*q) > 0 {
				return nil, errTaken
			}
			return q, nil
		})
		HandleBidiStream(s, talk, func(ctx context.Context, in *Receiver[Bytes], out *Sender[Bytes]) error {
			set(ctx, "stream")
			if err := out.Send(&Bytes{}); err != nil {
				return err
			}
			if err := SetHeader(ctx, "h", "late"); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			if err := SetTrailer(ctx, "big", string(make([]byte, wire.MaxMetadataValue+1))); !errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
			for i := range 3 {
				err := SetTrailer(ctx, fmt.Sprint(i), string(make([]byte, wire.MaxMetadataValue)))
				if (err != nil) != (i > 0) {
					t.Error(i, err)
				}
			}
			if _, err := in.Receive(); !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			return nil
		})
	}, func(r *rig) {
		var h, tr Pairs
		check := func(trailer string) {
			r.t.Helper()
			var all []string
			for k, v := range h.All() {
				all = append(all, k, v)
			}
			if last, ok := h.Get("h"); !ok || last != "2" || !slices.Equal(all, []string{"h", "1", "h", "2"}) {
				r.t.Errorf("the header is %q", all)
			}
			if got, _ := tr.Get("t"); got != trailer {
				r.t.Errorf("the trailer is %q", got)
			}
			h, tr = Pairs{}, Pairs{}
		}
		for _, q := range []Bytes{nil, {1}} {
			_, err := Call(r.t.Context(), r.c, unary, &q, ReceiveHeader(&h), ReceiveTrailer(&tr))
			if (err == nil) != (len(q) == 0) {
				r.t.Error(err)
			}
			check("call")
		}
		if _, err := Call(r.t.Context(), r.c, unary, &Bytes{}); err != nil {
			r.t.Error(err)
		}
		d, err := OpenBidiStream(r.t.Context(), r.c, talk, ReceiveHeader(&h), ReceiveTrailer(&tr))
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := d.Receive(); err != nil {
			r.t.Fatal(err)
		}
		d.CloseSend()
		_, err = d.Receive()
		if !errors.Is(err, io.EOF) {
			r.t.Error(err)
		}
		check("stream")
		r.quiet()
	})
}

// Interceptors on both sides see each item and the end, and may refuse an item.
func TestInterceptorsSeeItems(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	see := func(who string) Interceptor {
		return func(ctx context.Context, call *Info, next func(context.Context) error) error {
			note := func(what string, was func(any) error) func(any) error {
				return func(item any) error {
					mu.Lock()
					seen = append(seen, fmt.Sprint(who, what, string(*item.(*Bytes))))
					mu.Unlock()
					if was != nil {
						return was(item)
					}
					if string(*item.(*Bytes)) == "bad" && what == " sends " {
						return errTaken
					}
					return nil
				}
			}
			call.OnSend, call.OnReceive = note(" sends ", call.OnSend), note(" receives ", call.OnReceive)
			ended := func(err error) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprint(who, " ends ", err))
			}
			call.Ended = ended
			err := next(ctx)
			if call.Server {
				ended(err)
			}
			return err
		}
	}
	cfg := rigConfig{client: ClientConfig{Interceptors: []Interceptor{see("client")}}, server: ServerConfig{Interceptors: []Interceptor{see("server"), see("inner")}}}
	inWorld(t, cfg, handleTalk, func(r *rig) {
		d, err := OpenBidiStream(r.t.Context(), r.c, talk)
		if err != nil {
			r.t.Fatal(err)
		}
		bad, good := Bytes("bad"), Bytes("x")
		if err := d.Send(&bad); !errors.Is(err, errTaken) {
			r.t.Error(err)
		}
		if err := d.Send(&good); err != nil {
			r.t.Fatal(err)
		}
		if got, err := d.Receive(); err != nil || string(*got) != "x" {
			r.t.Fatal(got, err)
		}
		d.CloseSend()
		_, err = d.Receive()
		if !errors.Is(err, io.EOF) {
			r.t.Error(err)
		}
		r.quiet()
		mu.Lock()
		defer mu.Unlock()
		expected := []string{
			"client sends bad", "client sends x", "inner receives x", "server receives x", "inner sends x", "server sends x", "client receives x",
			"inner ends <nil>", "server ends <nil>", "client ends EOF",
		}
		if !slices.Equal(seen, expected) {
			r.t.Errorf("they have seen %q", seen)
		}
	})
}

// A server of version 1 gets no streams of clients.
func TestOldServerTakesNoItems(t *testing.T) {
	inWorld(t, rigConfig{}, handleSum, func(r *rig) {
		r.c.link().version = 1
		_, err := OpenClientStream(r.t.Context(), r.c, sum)
		want(r.t, err, ErrVersion, FateNotSent)
	})
}

// A handler that has returned can neither receive nor send.
func TestStreamOfAHandlerThatHasReturned(t *testing.T) {
	var in *Receiver[Bytes]
	var out *Sender[Bytes]
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleBidiStream(s, talk, func(_ context.Context, i *Receiver[Bytes], o *Sender[Bytes]) error {
			in, out = i, o
			_, err := i.Receive()
			return err
		})
	}, func(r *rig) {
		d, err := OpenBidiStream(r.t.Context(), r.c, talk)
		if err != nil {
			r.t.Fatal(err)
		}
		for range 2 {
			if err := d.Send(&Bytes{}); err != nil {
				r.t.Fatal(err)
			}
		}
		_, err = d.Receive()
		if !errors.Is(err, io.EOF) {
			r.t.Error(err)
		}
		r.Wait()
		if err := in.r.finalError(); !errors.Is(err, errHandled) {
			r.t.Errorf("its items are kept: %v", err)
		}
		for err = nil; err == nil; _, err = in.Receive() { // one may have been taken with the first
		}
		if !errors.Is(err, errHandled) {
			r.t.Error(err)
		}
		if err := out.Send(&Bytes{}); !errors.Is(err, errHandled) {
			r.t.Error(err)
		}
		r.quiet()
	})
}

// An item that waits for room when the connection ends was not sent, and Send returns an error.
func TestSendAtTheEndOfAConnection(t *testing.T) {
	inWorlds(t, handleTalk, func(r *rig) {
		d, err := OpenBidiStream(r.t.Context(), r.c, talk)
		if err != nil {
			r.t.Fatal(err)
		}
		d.s.l.out.dropUnsent() // the first step of link.handleClosed
		sent := make(chan error, 1)
		go func() { sent <- d.Send(&Bytes{1}) }()
		r.Wait()
		r.s.Close()
		if err := <-sent; !errors.Is(err, ErrUnavailable) {
			r.t.Errorf("%v, want that the connection has ended", err)
		}
	})
}
