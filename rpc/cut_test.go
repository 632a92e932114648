package rpc

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// wide lets both sides send answers and items of many pieces.
var wide = rigConfig{server: ServerConfig{MaxMessage: 1 << 20, Credits: 32}, client: ClientConfig{MaxMessage: 1 << 20, Credits: 32}}

// huge is sent in more pieces than the client lets the server send ahead.
var huge = bytes.Repeat([]byte("large"), 80<<10)

// answered waits until no handler of the server's runs.
func (r *rig) answered() {
	for r.s.InFlight() > 0 {
		r.Advance(time.Millisecond)
	}
}

// hasDrain reports whether the client knows that its server drains.
func (l *link) hasDrain() bool {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.draining
}

// A call whose handler has returned is answered, also if its answer is still being sent when the
// server has nothing else to do before the end of its drain: the last drain frame refuses no call
// that was executed.
func TestDrainAnswersBeforeItRefuses(t *testing.T) {
	inWorld(t, wide, func(s *Server) {
		HandleRaw(s, block, func(context.Context, []byte, []byte) ([]byte, error) { return huge, nil })
	}, func(r *rig) {
		r.Latency(there, 10*time.Millisecond)
		got := make(chan error, 1)
		l := r.c.link()
		go func() {
			reply, err := CallRaw(r.within(time.Minute), r.c, block, nil, nil)
			if err == nil && !bytes.Equal(reply, huge) {
				err = errors.New("another answer")
			}
			got <- err
		}()
		for l.unsent() {
			r.Advance(time.Millisecond)
		}
		r.Advance(15 * time.Millisecond)
		r.answered()
		if err := r.s.Shutdown(r.within(time.Minute)); err != nil {
			r.t.Error(err)
		}
		if err := <-got; err != nil {
			r.t.Errorf("the call that was executed: %v", err)
		}
	})
}

// unsent reports whether no call is in flight.
func (l *link) unsent() bool { return l.inUse.Load() == 0 }

// A client goes on confirming parts when its server drains.
func TestLargeAnswerOfADrainingServer(t *testing.T) {
	b := &blocking{began: make(chan struct{}, 1), release: make(chan struct{})}
	inWorld(t, wide, func(s *Server) {
		b = &blocking{began: make(chan struct{}, 1), release: make(chan struct{})}
		HandleRaw(s, block, func(context.Context, []byte, []byte) ([]byte, error) {
			b.began <- struct{}{}
			<-b.release
			return huge, nil
		})
	}, func(r *rig) {
		l := r.c.link()
		got, drained := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := CallRaw(r.within(time.Minute), r.c, block, nil, nil)
			got <- err
		}()
		<-b.began
		go func() { drained <- r.s.Shutdown(r.within(time.Minute)) }()
		for !l.hasDrain() {
			r.Advance(time.Millisecond)
		}
		close(b.release)
		if err := <-got; err != nil {
			r.t.Error(err)
		}
		if err := <-drained; err != nil {
			r.t.Error(err)
		}
	})
}

// The trailer is part of what a client confirms: however many answers have one, the next large one
// does not wait.
func TestTrailersAreConfirmed(t *testing.T) {
	inWorld(t, wide, func(s *Server) {
		HandleRaw(s, block, func(ctx context.Context, _, _ []byte) ([]byte, error) {
			if err := SetTrailer(ctx, "t", strings.Repeat("x", wire.MaxMetadataValue)); err != nil {
				return nil, err
			}
			return huge[:40<<10], nil
		})
	}, func(r *rig) {
		l := r.c.link()
		for i := range 20 {
			if _, err := CallRaw(r.within(time.Minute), r.c, block, nil, nil); err != nil {
				r.t.Fatalf("call %d: %v", i, err)
			}
		}
		r.Wait()
		l.out.mu.Lock()
		left := l.unread
		l.out.mu.Unlock()
		for _, c := range r.s.connections() {
			c.out.mu.Lock()
			if c.out.cuts.ahead != left {
				r.t.Errorf("%d bytes are not confirmed, and the client will confirm %d", c.out.cuts.ahead, left)
			}
			c.out.mu.Unlock()
		}
	})
}

// The largest error comes whole.
func TestLargestError(t *testing.T) {
	text, details := strings.Repeat("t", wire.MaxErrorText), bytes.Repeat([]byte("d"), wire.MaxErrorDetails)
	m := NewMethod[Bytes, Bytes]("test.LargestError")
	inWorld(t, wide, func(s *Server) {
		Handle(s, m, func(ctx context.Context, _ *Bytes) (*Bytes, error) {
			if err := SetTrailer(ctx, "t", strings.Repeat("x", wire.MaxMetadataValue)); err != nil {
				return nil, err
			}
			return nil, &Error{Code: codeOf(errTaken), Message: text, Details: details}
		})
	}, func(r *rig) {
		l := r.c.link()
		var trailer Pairs
		_, err := Call(r.within(time.Minute), r.c, m, &Bytes{}, ReceiveTrailer(&trailer))
		var e *Error
		if !errors.Is(err, errTaken) || !errors.As(err, &e) || !bytes.Equal(e.Details, details) || len(e.Message) != len(text) {
			r.t.Errorf("got %.200v", err)
		}
		if v, _ := trailer.Get("t"); len(v) != wire.MaxMetadataValue {
			r.t.Errorf("a trailer of %d bytes", len(v))
		}
		if r.c.link() != l {
			r.t.Error("the connection has ended")
		}
	})
}

// A header that comes too late is refused, also if there was no metadata before.
func TestHeaderBehindAnItem(t *testing.T) {
	late := make(chan error, 1)
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleStream(s, largeStream, func(ctx context.Context, _ *Bytes, out *Sender[Bytes]) error {
			if err := out.Send(&Bytes{1}); err != nil {
				return err
			}
			late <- SetHeader(ctx, "h", "late")
			if err := SetTrailer(ctx, "t", "in time"); err != nil {
				return err
			}
			return out.Send(&Bytes{2})
		})
	}, func(r *rig) {
		in, err := Open(r.within(time.Minute), r.c, largeStream, &Bytes{})
		if err != nil {
			r.t.Fatal(err)
		}
		n := 0
		for _, err := range in.All() {
			if err != nil {
				r.t.Fatal(err)
			}
			n++
		}
		if err := <-late; !errors.Is(err, ErrClosed) || n != 2 {
			r.t.Errorf("%v, and %d items came", err, n)
		}
		if v, _ := in.Trailer().Get("t"); v != "in time" {
			r.t.Errorf("the trailer is %q", v)
		}
	})
}

// stuckStream begins a stream of a client that confirms nothing: a large item of it is not sent.
// The caller is its handler.
func (r *rig) stuckStream() *serverCall {
	r.t.Helper()
	old := r.s.connections()
	r.rawClientOf(2).Ignore()
	r.Wait()
	c := slices.DeleteFunc(r.s.connections(), func(c *serverConn) bool { return c == old[0] })[0]
	call := &serverCall{c: c, h: r.s.handlerOf("test.Large"), id: 7, window: 1 << 20, waiter: waiter{room: make(chan struct{}, 1)}}
	if code := r.s.admitCall(c, call.h); code != 0 {
		r.t.Fatal(code)
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.calls = append(make([]*serverCall, 7), call)
	c.out.cuts.ahead = cutAhead
	return call
}

func handleLarge(s *Server) {
	HandleStream(s, largeStream, func(context.Context, *Bytes, *Sender[Bytes]) error { return nil })
}

// A stream may be answered while a goroutine that its handler has left behind sends a large item.
// The rest of the item is dropped, because nothing may follow the answer, and Send fails.
func TestAnswerDropsALargeItem(t *testing.T) {
	inWorld(t, wide, handleLarge, func(r *rig) {
		call := r.stuckStream()
		item := Bytes(huge[:60<<10])
		sent := make(chan error, 1)
		go func() { sent <- call.sendWhenRoom(&item) }()
		r.Wait()
		if call.queueAnswer(&outcome{}, nil) {
			call.c.out.requestFlush()
		}
		o := &call.c.out
		o.mu.Lock()
		if n := len(o.cuts.all); n > 0 || o.cuts.bytes > 0 {
			r.t.Errorf("%d items of %d bytes follow the answer", n, o.cuts.bytes)
		}
		o.mu.Unlock()
		r.Wait()
		call.ctx.cancelContext(errTaken) // later
		if err := <-sent; !errors.Is(err, errHandled) {
			r.t.Errorf("Send: %v", err)
		}
	})
}

// A Send whose item was dropped in the middle, because the connection has ended, fails.
func TestLargeItemOfAConnectionThatEnds(t *testing.T) {
	inWorld(t, wide, handleLarge, func(r *rig) {
		call := r.stuckStream()
		item := Bytes(huge[:60<<10])
		sent := make(chan error, 1)
		go func() { sent <- call.sendWhenRoom(&item) }()
		r.Wait()
		call.c.out.dropUnsent()
		r.Wait()
		call.ctx.cancelContext(errTaken) // as handleClosed does then
		if err := <-sent; !errors.Is(err, errTaken) {
			r.t.Errorf("Send: %v", err)
		}
	})
}

// A goroutine that its handler has left behind may send its first item while the stream is
// answered. The header of the call still precedes it.
func TestHeaderWhileTheHandlerReturns(t *testing.T) {
	inWorld(t, wide, handleLarge, func(r *rig) {
		call := r.stuckStream()
		c, o := call.c, &call.c.out
		for range 20_000 {
			o.mu.Lock()
			o.woken = true // nothing is sent
			c.calls[7] = call
			o.mu.Unlock()
			call.ctx.headed.Store(false)
			call.ctx.meta.Store(&answerMeta{header: Pairs{wire.AppendPair(nil, "k", "v")}})
			var both sync.WaitGroup
			both.Go(func() { _, _, _ = call.queueItem(&Bytes{1}) })
			both.Go(func() { call.queueAnswer(&outcome{}, nil) })
			both.Wait()
			o.mu.Lock()
			h, _, _, err := wire.ParseFrame(o.cur)
			o.cur, o.bytes, o.woken = nil, 0, false
			o.mu.Unlock()
			if err != nil || h.Type != wire.FrameHeader {
				r.t.Fatalf("a frame of type %d is first: %v", h.Type, err)
			}
			if code := r.s.admitCall(c, call.h); code != 0 {
				r.t.Fatal(code)
			}
		}
		call.givePlaceBack()
		r.s.callAnswered()
	})
}

// On a loop, Send does not wait until a large item was sent. The next item does, also on another
// goroutine.
func TestItemBehindALargeOneOfALoop(t *testing.T) {
	cfg := wide
	cfg.world = mayStall
	inWorld(t, cfg, handleLarge, func(r *rig) {
		call := r.stuckStream()
		item := Bytes(huge[:60<<10])
		if err := r.onLoop(r.far, func() error { return call.sendWhenRoom(&item) }); !errors.Is(err, eventloop.ErrOnLoop) {
			r.t.Errorf("Send on a loop: %v", err)
		}
		sent := make(chan error, 1)
		go func() { sent <- call.sendWhenRoom(&Bytes{1}) }()
		r.Wait()
		select {
		case err := <-sent:
			r.t.Fatalf("an item has overtaken a large one: %v", err)
		default:
		}
		o := &call.c.out
		for range 2 {
			o.mu.Lock()
			o.cuts.ahead = 0 // confirmed
			o.mu.Unlock()
			o.requestFlush()
			r.Wait()
		}
		if err := <-sent; err != nil {
			r.t.Error(err)
		}
		if call.queueAnswer(&outcome{}, nil) {
			call.c.out.requestFlush()
		}
	})
}

// Small parts take no more memory than large ones, and empty ones none.
func TestSmallPartsTakeLittleMemory(t *testing.T) {
	const most = 100 << 10
	var p parts
	for i := range most {
		for _, part := range [][]byte{nil, {byte(i)}} {
			if err := p.add(1, part, most); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := 0
	for _, b := range p.all {
		kept += cap(b.b)
	}
	if kept > 2*most+keepBuffer || len(p.all) > most/smallBuffer+1 {
		t.Errorf("%d bytes in %d buffers are kept for %d", kept, len(p.all), most)
	}
	for i, b := range p.join(nil) {
		if b != byte(i) {
			t.Fatalf("byte %d is another one", i)
		}
	}
	for range 1000 {
		if err := p.add(1, nil, most); err != nil || len(p.all) > 0 {
			t.Fatal(err, len(p.all))
		}
	}
}

// Small items in parts, which no peer needs to send, take no more memory than others.
func TestSmallItemsInPartsTakeLittleMemory(t *testing.T) {
	const window = 64 << 10
	var r inbound
	r.init(nil, nil, nil, window, window, nil)
	for r.credit > 0 {
		if _, err := r.itemLocked(nil, 1, []byte{1}, true); err != nil {
			t.Fatal(err)
		}
	}
	kept := cap(r.in)
	for _, l := range r.large {
		for _, b := range l.parts.all {
			kept += cap(b.b)
		}
	}
	if kept > 2*window {
		t.Errorf("%d bytes are kept in a window of %d", kept, window)
	}
}

// Items in parts and whole ones are received in their order, whatever their sizes.
func TestOrderOfItemsInParts(t *testing.T) {
	var h *held
	inWorld(t, rigConfig{}, func(s *Server) { h = handleHeld(s) }, func(r *rig) {
		long := strings.Repeat("x", 20<<10)
		c := r.rawClientOf(3)
		last := func(body string) []byte {
			return frame(wire.Header{Type: wire.FrameItem, Flags: wire.FlagParts, Call: 7}, body)
		}
		c.say(declareHeld, openHeld, item7("a"), part(7, "b"), last("c"), last(""), part(7, long), last("d"), item7("e"))
		for _, want := range []string{"a", "bc", "", long + "d", "e"} {
			h.receive <- struct{}{}
			if got := string(<-h.got); got != want {
				r.t.Errorf("%d bytes, want %d", len(got), len(want))
			}
		}
	})
}

// Memory of a large item that is dropped is there for those that wait for it.
func TestDroppedCutMakesRoom(t *testing.T) {
	inWorld(t, wide, handleEcho, func(r *rig) {
		o := &r.s.connections()[0].out
		w := &waiter{room: make(chan struct{}, 1)}
		frame := readyFrame{h: wire.Header{Type: wire.FrameItem}, body: huge}
		frame.encodeLarge(true)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.putEncodedLocked(&frame)
		o.awaitLocked(w)
		o.dropCutLocked(frame.cut)
		if len(w.room) == 0 || w.waits || o.totalLocked() > 0 {
			r.t.Errorf("it still waits, and %d bytes are kept", o.totalLocked())
		}
	})
}

// Nothing is sent of a call that was answered, not even its header.
func TestNoHeaderOfAnAnsweredCall(t *testing.T) {
	inWorld(t, wide, handleLarge, func(r *rig) {
		call := r.stuckStream()
		if call.queueAnswer(&outcome{}, nil) {
			call.c.out.requestFlush()
		}
		r.Wait()
		call.ctx.meta.Store(&answerMeta{header: Pairs{wire.AppendPair(nil, "k", "v")}})
		if _, sent, err := call.queueItem(&Bytes{1}); sent || !errors.Is(err, errHandled) {
			r.t.Errorf("sent %v, %v", sent, err)
		}
		o := &call.c.out
		o.mu.Lock()
		defer o.mu.Unlock()
		if n := o.totalLocked(); n > 0 {
			r.t.Errorf("%d bytes were queued", n)
		}
	})
}

// After an item that does not decode, a handler receives nothing more, however often it asks.
func TestReceiverEndsAtItsDecodeError(t *testing.T) {
	var first, later error
	again := make(chan struct{})
	inWorld(t, rigConfig{}, func(s *Server) {
		again = make(chan struct{})
		HandleClientStream(s, sum, func(_ context.Context, in *Receiver[wrapperspb.Int64Value]) (*wrapperspb.Int64Value, error) {
			_, first = in.Receive()
			<-again
			_, later = in.Receive()
			return wrapperspb.Int64(0), nil
		})
	}, func(r *rig) {
		up, err := OpenClientStream(r.t.Context(), r.c, ClientStream[Bytes, Bytes]{newMethod("test.Sum", clientSends, bytesCodec, bytesCodec)})
		if err != nil {
			r.t.Fatal(err)
		}
		if err := up.Send(&Bytes{0xff}); err != nil {
			r.t.Fatal(err)
		}
		r.Wait()
		for range 3 {
			if err := up.Send(&Bytes{}); err != nil {
				r.t.Fatal(err)
			}
		}
		r.Wait()
		close(again)
		if _, err := up.CloseAndReceive(); err != nil {
			r.t.Error(err)
		}
		if !errors.Is(first, ErrBadMessage) || !errors.Is(later, ErrBadMessage) {
			r.t.Errorf("got %v, then %v", first, later)
		}
		r.quiet()
	})
}
