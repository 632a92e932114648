package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var (
	count = NewStream[wrapperspb.Int64Value, wrapperspb.Int64Value]("test.Count")
	blobs = NewStream[wrapperspb.Int64Value, Bytes]("test.Blobs")
)

// handleCount counts up to the request, or forever if that is negative.
func handleCount(s *Server) (sent *atomic.Int64, ended chan error) {
	sent, ended = new(atomic.Int64), make(chan error, 100)
	HandleStream(s, count, func(_ context.Context, q *wrapperspb.Int64Value, out *Sender[wrapperspb.Int64Value]) error {
		for i := int64(0); q.Value < 0 || i < q.Value; i++ {
			if err := out.Send(wrapperspb.Int64(i)); err != nil {
				ended <- err
				return err
			}
			sent.Add(1)
		}
		ended <- nil
		return nil
	})
	return sent, ended
}

func TestStream(t *testing.T) {
	inWorld(t, rigConfig{}, func(s *Server) { handleCount(s) }, func(r *rig) {
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(20_000)) // more than a window
		if err != nil {
			r.t.Fatal(err)
		}
		next := int64(0)
		for item, err := range in.All() {
			if err != nil || item.Value != next {
				r.t.Fatalf("got %v, %v, want %d", item, err, next)
			}
			next++
		}
		if next != 20_000 {
			r.t.Errorf("the stream had %d items", next)
		}
		if _, err := in.Receive(); !errors.Is(err, io.EOF) {
			r.t.Error(err)
		}
		if n := r.c.InFlight(); n != 0 {
			r.t.Errorf("%d calls are still in flight", n)
		}
	})
}

// If a stream is not read, its handler has to wait. No more than its window is kept, and nothing
// else is delayed.
func TestSlowReceiverStopsItsStreamOnly(t *testing.T) {
	var sent *atomic.Int64
	var ended chan error
	inWorld(t, rigConfig{client: ClientConfig{StreamWindow: 4 << 10}}, func(s *Server) {
		handleEcho(s)
		sent, ended = handleCount(s)
	}, func(r *rig) {
		slow, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1))
		if err != nil {
			r.t.Fatal(err)
		}
		r.Advance(time.Minute)
		unread := sent.Load()
		if most := int64(4<<10/wire.HeaderLen + 1); unread < 100 || unread > most {
			r.t.Errorf("%d items were sent to nobody, at most %d fit", unread, most)
		}
		if got, err := CallRaw(r.t.Context(), r.c, echo, []byte("a call"), nil); err != nil || string(got) != "a call" {
			r.t.Error(got, err)
		}
		other, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(1000))
		if err != nil {
			r.t.Fatal(err)
		}
		for _, err := range other.All() {
			if err != nil {
				r.t.Fatal(err)
			}
		}
		for i := range unread { // bytes that are read are sent again
			if item, err := slow.Receive(); err != nil || item.Value != i {
				r.t.Fatal(item, err)
			}
		}
		r.Wait()
		if n := sent.Load(); n < 3*unread/2 {
			r.t.Errorf("%d items were sent after %d were taken", n, unread)
		}
		slow.Close()
		<-ended // other's
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.t.Errorf("the handler got %v", err)
		}
		for err = nil; err == nil; _, err = slow.Receive() {
		}
		want(r.t, err, context.Canceled, FateUnknown)
		r.Wait()
		if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
			r.t.Errorf("%d and %d calls are still in flight", n, m)
		}
	})
}

func TestStreamEnds(t *testing.T) {
	var ended chan error
	inWorld(t, rigConfig{}, func(s *Server) {
		_, ended = handleCount(s)
		HandleStream(s, blobs, func(_ context.Context, q *wrapperspb.Int64Value, out *Sender[Bytes]) error {
			b := make(Bytes, q.Value)
			if err := out.Send(&b); err != nil {
				return err
			}
			return fmt.Errorf("after one: %w", errTaken)
		})
	}, func(r *rig) {
		// nearly a window, in a separate message
		in, err := Open(r.t.Context(), r.c, blobs, wrapperspb.Int64(60<<10))
		if err != nil {
			r.t.Fatal(err)
		}
		if b, err := in.Receive(); err != nil || len(*b) != 60<<10 {
			r.t.Fatal(err)
		}
		_, err = in.Receive()
		want(r.t, err, errTaken, FateAnswered)

		in, err = Open(r.t.Context(), r.c, blobs, wrapperspb.Int64(4<<20))
		if err != nil {
			r.t.Fatal(err)
		}
		_, err = in.Receive()
		want(r.t, err, ErrTooLarge, FateAnswered)

		in, err = Open(r.t.Context(), r.c, Stream[wrapperspb.Int64Value, Bytes]{newMethod("test.None", serverSends, protoCodec, bytesCodec)},
			wrapperspb.Int64(1))
		if err != nil {
			r.t.Fatal(err)
		}
		_, err = in.Receive()
		want(r.t, err, ErrUnknownMethod, FateRefused)

		endless, err := Open(r.within(time.Second), r.c, count, wrapperspb.Int64(-1))
		if err != nil {
			r.t.Fatal(err)
		}
		r.Advance(2 * time.Second) // without a read, it still ends
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			r.t.Errorf("the handler got %v", err)
		}
		for err = nil; err == nil; _, err = endless.Receive() {
		}
		// the client's own, or the server's answer at the same moment
		if !errors.Is(err, ErrDeadline) {
			r.t.Error(err)
		}

		_, err = CallRaw(r.t.Context(), r.c, RawMethod{newMethod("test.Count", unary, bytesCodec, bytesCodec)}, nil, nil)
		want(r.t, err, ErrUnknownMethod, FateRefused) // a stream there, a call here
		r.Wait()
		if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
			r.t.Errorf("%d and %d calls are still in flight", n, m)
		}
	})
}

func TestStreamOutlivesNoConnection(t *testing.T) {
	var ended chan error
	inWorld(t, rigConfig{}, func(s *Server) { _, ended = handleCount(s) }, func(r *rig) {
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1))
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := in.Receive(); err != nil {
			r.t.Fatal(err)
		}
		r.RemoveDevice("mem1")
		for err = nil; err == nil; _, err = in.Receive() {
		}
		want(r.t, err, ErrUnavailable, FateDelivered)
		if err := <-ended; !errors.Is(err, ErrUnavailable) {
			r.t.Errorf("the handler got %v", err)
		}
	})
}
