package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/rpc"
)

// dialog is a bidirectional stream whose server sends every item back. One goroutine may send while
// another one receives. All sides receive into the same variable again and again.
type dialog struct {
	send    func(p []byte) error
	receive func() ([]byte, error) // the next item, until the next call
	close   func() error
}

// talkers are the contestants whose streams go in both directions. Each call is an item, and its
// answer is the item that is back.
var talkers = contest.Contestants{
	"rpc":     {Serve: serveTalk, Dial: pingPong(dialTalk)},
	"grpc-go": {Serve: serveGRPC, Dial: pingPong(dialGRPCTalk)},
}

func pingPong(dial func(string, measure.Entry) (dialog, error)) func(string, measure.Entry) (contest.Calls, error) {
	return func(addr string, e measure.Entry) (contest.Calls, error) {
		t, err := dial(addr, e)
		return contest.Calls{
			Call: func(p, _ []byte) ([]byte, error) {
				if err := t.send(p); err != nil {
					return nil, err
				}
				return t.receive()
			},
			Close: t.close,
		}, err
	}
}

// dialItems makes a client that sends items as fast as the stream's window lets it.
func dialItems(addr string, e measure.Entry) (measure.Client, error) {
	dial := dialGRPCTalk
	if e.Ours {
		dial = dialTalk
	}
	t, err := dial(addr, e)
	return measure.Client{Run: t.sendFlood, Close: t.close}, err
}

// sendFlood sends items until d has passed, and receives all of them.
func (t dialog) sendFlood(d time.Duration) (measure.Sample, error) {
	const unchecked = 64 // the clock is read once for so many items
	p := contest.NewPayload(contest.PayloadSize)
	last := slices.Clone(p)
	last[0] = 0
	var over atomic.Bool
	var sending sync.WaitGroup
	var sendErr error
	begun := time.Now()
	sending.Go(func() {
		for sendErr == nil && !over.Load() {
			sendErr = t.send(p)
		}
		if sendErr == nil {
			sendErr = t.send(last)
		}
	})
	n := 0
	for {
		got, err := t.receive()
		if err != nil {
			over.Store(true)
			sending.Wait()
			return measure.Sample{}, errors.Join(err, sendErr)
		}
		n++
		if got[0] == last[0] {
			break
		}
		if err := contest.Echoed(got, p); err != nil {
			return measure.Sample{}, err
		}
		if n%unchecked == 0 && time.Since(begun) >= d {
			over.Store(true)
		}
	}
	took := time.Since(begun)
	sending.Wait()
	return measure.Sample{N: n, Seconds: took.Seconds(), Bytes: n * contest.PayloadSize}, nil
}

// echoItems sends each item back until the stream ends.
func echoItems(receive, send func() error) error {
	for {
		if err := receive(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := send(); err != nil {
			return err
		}
	}
}

var talkMethod = rpc.NewBidiStream[rpc.Bytes, rpc.Bytes]("bench.Talk")

func serveTalk(e measure.Entry) (measure.Service, error) {
	return startServer(e, func(s *rpc.Server) {
		rpc.HandleBidiStream(s, talkMethod, func(_ context.Context, in *rpc.Receiver[rpc.Bytes], out *rpc.Sender[rpc.Bytes]) error {
			var item rpc.Bytes
			return echoItems(func() error { return in.ReceiveInto(&item) }, func() error { return out.Send(&item) })
		})
	}, rpc.ServerConfig{})
}

func dialTalk(addr string, e measure.Entry) (dialog, error) {
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return dialog{}, err
	}
	c, err := connectClient(w, addr)
	if err != nil {
		return dialog{}, err
	}
	d, err := rpc.OpenBidiStream(context.Background(), c, talkMethod)
	if err != nil {
		return dialog{}, err
	}
	return newDialog(d.Send, d.ReceiveInto, func() error {
		d.Close()
		c.Close()
		return w.Close()
	}), nil
}

// newDialog makes a dialog of a stream's functions, which take messages of type *B.
func newDialog[B ~[]byte](send, receive func(*B) error, end func() error) dialog {
	var sent, received B
	return dialog{
		send: func(p []byte) error {
			sent = p
			return send(&sent)
		},
		receive: func() ([]byte, error) {
			err := receive(&received)
			return received, err
		},
		close: end,
	}
}

// grpcTalk is the description of the stream that protoc would generate.
var grpcTalk = grpc.StreamDesc{
	StreamName: "Talk", ServerStreams: true, ClientStreams: true,
	Handler: func(_ any, s grpc.ServerStream) error {
		p := new([]byte)
		return echoItems(func() error { return s.RecvMsg(p) }, func() error { return s.SendMsg(p) })
	},
}

func dialGRPCTalk(addr string, _ measure.Entry) (dialog, error) {
	c, err := newGRPC(addr)
	if err != nil {
		return dialog{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := c.NewStream(ctx, &grpcTalk, "/bench.Echo/Talk")
	return newDialog(func(p *[]byte) error { return s.SendMsg(p) }, func(p *[]byte) error { return s.RecvMsg(p) }, func() error {
		cancel()
		return c.Close()
	}), err
}
