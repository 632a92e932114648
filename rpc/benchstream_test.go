package rpc

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

var (
	benchItems = NewStream[Bytes, Bytes]("bench.Items")
	benchTalk  = NewBidiStream[Bytes, Bytes]("bench.Talk")
	benchLarge = NewRawMethod("bench.Large")
)

// handleBenchStreams registers the handlers of the benchmarks of streams.
func handleBenchStreams(s *Server) {
	HandleStream(s, benchItems, func(_ context.Context, q *Bytes, out *Sender[Bytes]) error {
		for {
			if err := out.Send(q); err != nil {
				return err
			}
		}
	})
	HandleBidiStream(s, benchTalk, func(_ context.Context, in *Receiver[Bytes], out *Sender[Bytes]) error {
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

// BenchmarkItems is a stream of items of 64 bytes from the server.
func BenchmarkItems(b *testing.B) {
	c := echoPair(b, HandlerConfig{}, handleBenchStreams).client
	q := make(Bytes, 64)
	r, err := Open(context.Background(), c, benchItems, &q)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Receive(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
}

// BenchmarkBidi is a stream of items of 64 bytes that come back: one after the other, and as fast
// as they go.
func BenchmarkBidi(b *testing.B) {
	open := func(b *testing.B) *Dialog[Bytes, Bytes] {
		d, err := OpenBidiStream(context.Background(), echoPair(b, HandlerConfig{}, handleBenchStreams).client, benchTalk)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(d.Close)
		b.ReportAllocs()
		return d
	}
	q := make(Bytes, 64)
	b.Run("PingPong", func(b *testing.B) {
		d := open(b)
		for b.Loop() {
			if err := d.Send(&q); err != nil {
				b.Fatal(err)
			}
			if _, err := d.Receive(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Stream", func(b *testing.B) {
		d := open(b)
		b.ResetTimer()
		go func() {
			for range b.N {
				if err := d.Send(&q); err != nil {
					b.Error(err)
				}
			}
		}()
		for range b.N {
			if _, err := d.Receive(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
	})
}

// BenchmarkSmallBesideLarge is one caller of 64 bytes, alone and beside a caller whose answers, or
// requests, have 8 MiB, on one connection and on two.
func BenchmarkSmallBesideLarge(b *testing.B) {
	const large = 8 << 20
	b.Run("Alone", func(b *testing.B) { besideLarge(b, 0, 0, false) })
	b.Run("Answers", func(b *testing.B) { besideLarge(b, 0, large, false) })
	b.Run("Requests", func(b *testing.B) { besideLarge(b, large, 0, false) })
	b.Run("RequestsApart", func(b *testing.B) { besideLarge(b, large, 0, true) })
}

// besideLarge measures a caller of 64 bytes beside one whose requests and answers have these sizes;
// both 0: there is none. apart: each has a connection.
func besideLarge(b *testing.B, request, answer int, apart bool) {
	p := echoPair(b, HandlerConfig{})
	s := NewServer(p.there, ServerConfig{MaxMessage: 16 << 20})
	defer s.Close()
	HandleRaw(s, benchEcho, echoBytes)
	large := make([]byte, answer)
	HandleRaw(s, benchLarge, func(context.Context, []byte, []byte) ([]byte, error) { return large, nil })
	at, err := s.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	dial := func() *Client {
		c, err := Dial(context.Background(), p.here, at.String(), ClientConfig{MaxMessage: 16 << 20})
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	c := dial()
	defer c.Close()
	other := c
	if apart {
		other = dial()
		defer other.Close()
	}
	stop, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	sent := 0
	if request+answer > 0 {
		wg.Go(func() {
			q, reply := make([]byte, request), []byte(nil)
			for stop.Err() == nil {
				var err error
				if reply, err = CallRaw(stop, other, benchLarge, q, reply[:0]); err == nil {
					sent += len(q) + len(reply)
				}
			}
		})
	}
	q, reply := make([]byte, 64), []byte(nil)
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		at := time.Now()
		if reply, err = CallRaw(context.Background(), c, benchEcho, q, reply[:0]); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(at))
	}
	b.StopTimer()
	cancel()
	wg.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	if sent > 0 {
		b.ReportMetric(float64(sent)/1e6/b.Elapsed().Seconds(), "large-MB/s")
	}
}
