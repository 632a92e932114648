package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rdmanet"
	"github.com/rdmactor/rdmactor/rpc"
)

const (
	// maxMessage is the largest message of either side.
	maxMessage = 1 << 20
	// largest is about the maximum length of a request, an item or a message.
	largest = 400 << 10
	// patience is how long a call waits for its answer.
	patience = 10 * time.Second
)

// The methods of the service. All answer with the request.
var (
	echo  = rpc.NewRawMethod("soak.Echo")
	quick = rpc.NewRawMethod("soak.Quick") // answered on the loop
	again = rpc.NewRawMethod("soak.Again", rpc.MethodConfig{Idempotent: true})
	warm  = rpc.NewRawMethod("soak.Warm") // blocks its goroutine for a moment
	items = rpc.NewStream[rpc.Bytes, rpc.Bytes]("soak.Items")
)

// headSize is the length of a payload's head: its number, and the CRC of both number and body.
const headSize = 8 + 4

var noise = func() []byte {
	b := make([]byte, 2*largest)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it cannot fail
	return b
}()

// payload makes a payload with a body of random bytes.
func payload(number uint64, size int) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, headSize+size), number)
	at := rand.N(largest)
	body := noise[at : at+size]
	b = binary.BigEndian.AppendUint32(b, crc32.Update(crc32.ChecksumIEEE(b), crc32.IEEETable, body))
	return append(b, body...)
}

// numberOf returns the number of a payload. not ok: it is not as it was sent.
func numberOf(b []byte) (number uint64, ok bool) {
	if len(b) < headSize {
		return 0, false
	}
	sum := crc32.Update(crc32.ChecksumIEEE(b[:8]), crc32.IEEETable, b[headSize:])
	return binary.BigEndian.Uint64(b), sum == binary.BigEndian.Uint32(b[8:])
}

// servant is the server process.
type servant struct {
	*host
	server   *rpc.Server
	listener net.Listener
	streams  sync.WaitGroup
}

func startServant(h *host) (s *servant, err error) {
	s = &servant{host: h, server: rpc.NewServer(h.rt, rpc.ServerConfig{MaxMessage: maxMessage})}
	rpc.HandleRaw(s.server, echo, s.echoHandler)
	rpc.HandleRaw(s.server, again, s.echoHandler)
	rpc.HandleRaw(s.server, quick, s.echoHandler, rpc.HandlerConfig{OnLoop: true})
	rpc.HandleRaw(s.server, warm, func(ctx context.Context, b, reply []byte) ([]byte, error) {
		time.Sleep(beat / 10)
		return s.echoHandler(ctx, b, reply)
	})
	rpc.HandleStream(s.server, items, s.handleItems)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	at, err := s.server.Listen(ctx, h.server.Calls)
	if err != nil {
		return s, err
	}
	if s.listener, err = rdmanet.Listen(ctx, h.rt, h.server.Streams); err != nil {
		return s, err
	}
	s.streams.Go(s.acceptStreams)
	handler := actor.PropsFromProducer(func() actor.Actor { return &listener{s: s} })
	id := h.rt.CreateID(nil, rdma.IDConfig{Handler: handler, MaxMessage: maxMessage})
	on, err := rdma.Ask[*rdma.Listening](ctx, h.rt, id, &rdma.Serve{Addr: h.server.Messages})
	if err != nil {
		return s, err
	}
	h.server = addresses{at.String(), on.Local.String(), s.listener.Addr().String()}
	return s, nil
}

// close ends the work. The runtime's Shutdown ends the connections of messages.
func (s *servant) close() {
	s.server.Close()
	_ = s.listener.Close()
	s.streams.Wait()
}

// check records a fault if b is not as it was sent.
func (s *servant) check(b []byte) {
	if n, ok := numberOf(b); !ok {
		s.recordFault("payload %d of %d bytes is not what was sent", n, len(b))
	}
}

func (s *servant) echoHandler(_ context.Context, b, reply []byte) ([]byte, error) {
	s.check(b)
	return append(reply, b...), nil
}

// handleItems sends as many items as the request's number, each with its own number and the
// request.
func (s *servant) handleItems(_ context.Context, b *rpc.Bytes, out *rpc.Sender[rpc.Bytes]) error {
	s.check(*b)
	n, _ := numberOf(*b)
	for i := range n {
		item := rpc.Bytes(append(binary.BigEndian.AppendUint64(nil, i), *b...))
		if err := out.Send(&item); err != nil {
			return err
		}
	}
	return nil
}

// listener owns a connection of messages. It answers each with its head.
type listener struct {
	s    *servant
	last uint64 // number of the last message
}

// retained selects the messages that are retained for a while: one of so many.
const retained = 16

// Receive implements actor.Actor.
func (l *listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Accept{})
	case *rdma.Received:
		n, ok := numberOf(m.Data)
		if !ok {
			l.s.recordFault("message %d of %d bytes is not what was sent", n, len(m.Data))
			return
		}
		if n <= l.last {
			l.s.recordFault("message %d comes behind %d on one connection", n, l.last)
		}
		l.last = n
		ctx.Respond(rdma.NewSend(bytes.Clone(m.Data[:headSize])))
		if n%retained == 0 {
			time.AfterFunc(time.Duration(n%7)*20*time.Millisecond, m.Retain().Release)
		}
	case *rdma.SendFailed:
		if !errors.Is(m, rdma.ErrFlushed) {
			l.s.recordFault("an acknowledgement: %v", m)
		}
	}
}

// acceptStreams serves byte streams until the listener is closed. Each is sent back as it arrives.
func (s *servant) acceptStreams() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.recordFault("accept: %v", err)
			return
		}
		s.streams.Go(func() {
			_, err := io.Copy(c, c)
			if err != nil {
				_ = c.(*rdmanet.Conn).SetLinger(0)
			}
			_ = c.Close()
			if errors.Is(err, unix.ECONNRESET) {
				err = nil // the client may reset: it reports whether that was its intention
			}
			s.countWork("streams served", err)
		})
	}
}
