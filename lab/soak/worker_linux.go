package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/rdmanet"
	"github.com/rdmactor/rdmactor/rpc"
)

// The kinds of work. Each of them must continue after a fault.
const (
	smallCalls    = "small calls"
	loopCalls     = "calls on the loop"
	repeatedCalls = "idempotent calls"
	largeCalls    = "large calls"
	smallItems    = "streams of items"
	largeItems    = "streams of large items"
	smallMessages = "messages"
	largeMessages = "large messages"
	shortStreams  = "byte streams"
	longStream    = "chunks of a long byte stream"
)

var kindsOfWork = []string{
	smallCalls, loopCalls, repeatedCalls, largeCalls, smallItems, largeItems, smallMessages, largeMessages, shortStreams, longStream,
}

// streamPatience is how long a stream may take, and grace by how much an operation may exceed its
// deadline.
const (
	streamPatience = 30 * time.Second
	grace          = 20 * time.Second
)

// worker is the client process. Its goroutines each do one piece of work after the other.
type worker struct {
	*host
	ctx context.Context // ends with the work
	all sync.WaitGroup
}

func startCustomer(h *host) (end func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &worker{host: h, ctx: ctx}
	plain := rpc.ClientConfig{MaxMessage: maxMessage, Backoff: backoff, Timeout: patience}
	waits := plain
	waits.WaitForReady, waits.Retry = true, rpc.Retry{Attempts: 3}
	var clients [2]*rpc.Client
	for i, cfg := range []rpc.ClientConfig{plain, waits} {
		if err := eventually(ctx, func() (err error) {
			within, stop := context.WithTimeout(ctx, patience)
			defer stop()
			clients[i], err = rpc.Dial(within, h.rt, h.server.Calls, cfg)
			return err
		}); err != nil {
			cancel()
			return nil, err
		}
	}
	if h.number == 1 { // the peer of later ones is warmed up, or they do not live long
		if err := w.fillCaches(plain); err != nil {
			cancel()
			return nil, err
		}
	}
	w.call(smallCalls, clients[0], echo, 10*time.Millisecond, 2<<10)
	w.call(loopCalls, clients[0], quick, 10*time.Millisecond, 2<<10)
	w.call(repeatedCalls, clients[1], again, 10*time.Millisecond, 2<<10)
	w.call(largeCalls, clients[0], echo, 200*time.Millisecond, largest)
	w.call(largeCalls, clients[1], echo, 200*time.Millisecond, largest)
	w.receive(smallItems, clients[0], 200*time.Millisecond, 200, 300)
	w.receive(largeItems, clients[1], 500*time.Millisecond, 6, 300<<10)
	talkers := []*talker{w.talk(smallMessages, 15*time.Millisecond, 2<<10), w.talk(largeMessages, 250*time.Millisecond, 300<<10)}
	w.transfer()
	w.keepOn()
	return func() {
		cancel()
		for _, t := range talkers {
			t.closeAndWait()
		}
		w.all.Wait()
		for _, client := range clients {
			client.Close()
		}
	}, nil
}

var backoff = reconnect.Backoff{First: 20 * time.Millisecond, Most: time.Second}

// fillCaches makes both sides allocate what they may retain: memory for receiving large messages,
// 8 MiB for each of two loops, and the server's idle goroutines, 16. With the work alone this would
// take hours, and look like a leak.
func (w *worker) fillCaches(cfg rpc.ClientConfig) error {
	const clients, atATime, smallest = 4, 8, 64 << 10
	ctx, cancel := context.WithTimeout(w.ctx, 6*patience)
	defer cancel()
	var callers sync.WaitGroup
	for range clients {
		client, err := rpc.Dial(ctx, w.rt, w.server.Calls, cfg)
		if err != nil {
			return err
		}
		defer client.Close() // after Wait
		for range atATime {
			callers.Go(func() {
				for n := largest; n > smallest; n -= n / 8 {
					// on a busy machine some may fail, but not all
					_, _ = rpc.CallRaw(ctx, client, warm, payload(0, n), nil)
				}
			})
		}
	}
	callers.Wait()
	return nil
}

// every calls do repeatedly on a goroutine, until the work ends. Each call must end within the
// given time, measured by this process.
func (w *worker) every(pause time.Duration, work string, within time.Duration, do func(n uint64) error) {
	w.all.Go(func() { w.work(pause, work, within, do) })
}

func (w *worker) work(pause time.Duration, work string, within time.Duration, do func(n uint64) error) {
	for n := uint64(1); ; n++ {
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(rand.N(2 * pause)):
		}
		end := w.beginWork(work, within)
		err := do(n)
		if w.ctx.Err() != nil {
			err = nil // it was interrupted
		}
		end(err)
	}
}

// call starts a worker that makes one call after the other.
func (w *worker) call(work string, client *rpc.Client, m rpc.RawMethod, pause time.Duration, most int) {
	w.every(pause, work, patience+grace, func(n uint64) error {
		request := payload(n, rand.N(most))
		reply, err := rpc.CallRaw(w.ctx, client, m, request, nil)
		if err == nil && !bytes.Equal(reply, request) {
			err = wrongError("the answer of call %d has %d bytes, want %d, or they are others", n, len(reply), len(request))
		}
		return err
	})
}

// receive starts a worker that opens one stream of items after the other. It leaves one of seven
// before its end.
func (w *worker) receive(work string, client *rpc.Client, pause time.Duration, count, most int) {
	w.every(pause, work, streamPatience+grace, func(n uint64) error {
		ctx, cancel := context.WithTimeout(w.ctx, streamPatience)
		defer cancel()
		want := rand.N(uint64(count))
		request := rpc.Bytes(payload(want, rand.N(most)))
		r, err := rpc.Open(ctx, client, items, &request)
		if err != nil {
			return err
		}
		defer r.Close()
		for i := uint64(0); n%7 != 0 || i < 3; i++ {
			item, err := r.Receive()
			switch {
			case errors.Is(err, io.EOF) && i == want:
				return nil
			case errors.Is(err, io.EOF):
				return wrongError("stream %d ends after %d items of %d", n, i, want)
			case err != nil:
				return err
			case binary.BigEndian.Uint64(*item) != i || !bytes.Equal((*item)[8:], request):
				return wrongError("item %d of stream %d is another", i, n)
			}
		}
		return nil
	})
}

// transfer starts a worker that carries one byte stream after the other. One of four is reset
// before its end.
func (w *worker) transfer() {
	w.every(150*time.Millisecond, shortStreams, streamPatience+grace, func(n uint64) (err error) {
		conn, err := w.connect()
		if err != nil {
			return err
		}
		over := context.AfterFunc(w.ctx, func() { resetStream(conn) })
		defer func() {
			if over(); err != nil || n%4 == 0 {
				resetStream(conn)
			}
			_ = conn.Close()
		}()
		if err := conn.SetDeadline(time.Now().Add(streamPatience)); err != nil {
			return err
		}
		sent := payload(n, rand.N(largest))
		wrote := make(chan error, 1)
		go func() {
			_, err := conn.Write(sent)
			if err == nil && n%4 != 0 {
				err = conn.CloseWrite()
			}
			wrote <- err
		}()
		back := make([]byte, len(sent))
		if err := errors.Join(w.readAll(conn, back), <-wrote); err != nil {
			return err
		}
		if !bytes.Equal(back, sent) {
			return wrongError("stream %d of %d bytes comes back changed", n, len(sent))
		}
		if n%4 == 0 {
			return nil
		}
		if more, err := conn.Read(back); more > 0 {
			return wrongError("stream %d goes on for %d bytes behind its end", n, more)
		} else if !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	})
}

// keepOn starts a worker that uses one byte stream until its connection breaks, and then the next.
// It has no deadline: the keepalive has to detect that the peer is gone.
func (w *worker) keepOn() {
	var conn *rdmanet.Conn
	next := func(n uint64) (err error) {
		if conn == nil {
			if conn, err = w.connect(); err != nil {
				conn = nil
				return err
			}
		}
		this := conn
		over := context.AfterFunc(w.ctx, func() { resetStream(this) })
		defer over()
		sent := payload(n, 16<<10)
		back := make([]byte, len(sent))
		if _, err = conn.Write(sent); err == nil {
			err = w.readAll(conn, back)
		}
		if err == nil && !bytes.Equal(back, sent) {
			err = wrongError("chunk %d comes back changed", n)
		}
		if err != nil {
			resetStream(conn)
			conn = nil
		}
		return err
	}
	w.all.Go(func() {
		w.work(20*time.Millisecond, longStream, w.scale.recoveryBound(), next)
		if conn != nil {
			resetStream(conn)
		}
	})
}

func (w *worker) connect() (*rdmanet.Conn, error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	conn, err := rdmanet.Dial(ctx, w.rt, w.server.Streams)
	if err != nil {
		return nil, err
	}
	return conn.(*rdmanet.Conn), nil
}

// readAll fills p. A FIN before is an error: a killed process sends none.
func (w *worker) readAll(c *rdmanet.Conn, p []byte) (err error) {
	if _, err = io.ReadFull(c, p); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return wrongError("a stream ends in order where it must not: %w", err)
	}
	return err
}

// resetStream ends a stream without a FIN.
func resetStream(c *rdmanet.Conn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
