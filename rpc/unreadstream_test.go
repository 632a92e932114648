package rpc

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Items of a stream that its caller has given up are dropped: it does not count any longer.
func TestItemsOfAClosedStreamAreDropped(t *testing.T) {
	for name, end := range map[string]func(cancel func(), in *Receiver[Bytes]){
		"Close":   func(_ func(), in *Receiver[Bytes]) { in.Close() },
		"context": func(cancel func(), _ *Receiver[Bytes]) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				HandleStream(s, blobs, func(ctx context.Context, _ *wrapperspb.Int64Value, out *Sender[Bytes]) error {
					err := out.Send(&Bytes{1})
					<-ctx.Done()
					return err
				})
			}, func(r *rig) {
				ctx, cancel := context.WithCancel(r.t.Context())
				defer cancel()
				in, err := Open(ctx, r.c, blobs, wrapperspb.Int64(0))
				if err != nil {
					r.t.Fatal(err)
				}
				r.Wait()
				end(cancel, in)
				r.Wait()
				_, err = in.Receive()
				want(r.t, err, context.Canceled, FateUnknown)
				if n, m := r.c.streams.Load(), r.c.beyond.Load(); n != 0 || m != 0 {
					r.t.Errorf("%d streams with %d bytes still count", n, m)
				}
			})
		})
	}
}

// Streams that the server has ended count as open until they are read to their end, closed, or
// their contexts end: their items are in the client's memory. So a client that opens streams and
// reads none is refused further ones, and keeps no more than its memory.
func TestUnreadStreamsCount(t *testing.T) {
	const most = 4
	inWorld(t, rigConfig{client: ClientConfig{MaxStreams: most, MaxMessage: 64 << 10, StreamWindow: 4 << 10}}, func(s *Server) {
		HandleStream(s, blobs, func(_ context.Context, n *wrapperspb.Int64Value, out *Sender[Bytes]) error {
			b := make(Bytes, n.Value)
			return out.Send(&b)
		})
	}, func(r *rig) {
		ctx, cancel := context.WithCancel(r.t.Context())
		defer cancel()
		open := func() *Receiver[Bytes] {
			r.t.Helper()
			in, err := Open(ctx, r.c, blobs, wrapperspb.Int64(10<<10))
			if err != nil {
				r.t.Fatal(err)
			}
			return in
		}
		full := func() {
			r.t.Helper()
			r.Wait()
			_, err := Open(ctx, r.c, blobs, wrapperspb.Int64(1))
			want(r.t, err, ErrOverloaded, FateNotSent)
			if n := r.c.beyond.Load(); n < most*(6<<10) || n > most*(7<<10) {
				r.t.Errorf("%d bytes beyond the windows", n)
			}
		}
		var all []*Receiver[Bytes]
		for range most {
			all = append(all, open())
		}
		full()
		if b, err := all[0].Receive(); err != nil || len(*b) != 10<<10 {
			r.t.Error(err)
		}
		full() // it is not known to have ended
		if _, err := all[0].Receive(); !errors.Is(err, io.EOF) {
			r.t.Error(err)
		}
		all[0] = open()
		full()
		all[1].Close()
		_, err := all[1].Receive()
		want(r.t, err, context.Canceled, FateUnknown) // and not the end: an item was dropped
		all[1] = open()
		full()
		cancel()
		r.Advance(time.Millisecond)
		if n, m := r.c.streams.Load(), r.c.beyond.Load(); n != 0 || m != 0 {
			r.t.Errorf("%d streams with %d bytes still count", n, m)
		}
		_, err = all[0].Receive()
		want(r.t, err, context.Canceled, FateUnknown)
		all[0].Close()
	})
}
