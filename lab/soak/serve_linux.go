package main

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rdmanet"
	"github.com/rdmactor/rdmactor/rpc"
)

// servant is the server process.
type servant struct {
	*host
	calls, messages ledger
	server          *rpc.Server
	listener        net.Listener
	streams         sync.WaitGroup
}

func serve(h *host) (s *servant, err error) {
	s = &servant{host: h}
	s.server = rpc.NewServer(h.rt, rpc.ServerConfig{MaxMessage: maxMessage})
	rpc.HandleRaw(s.server, echo, s.echo(true))
	rpc.HandleRaw(s.server, again, s.echo(false))
	rpc.HandleRaw(s.server, quick, s.echo(true), rpc.HandlerConfig{OnLoop: true})
	rpc.HandleRaw(s.server, crowd, func(_ context.Context, _, reply []byte) ([]byte, error) {
		time.Sleep(beat / 2)
		return reply, nil
	})
	rpc.HandleRaw(s.server, bulk, func(_ context.Context, b, reply []byte) ([]byte, error) {
		return append(reply, b...), nil
	})
	rpc.HandleRaw(s.server, audit, s.audit)
	rpc.Handle(s.server, ask, s.ask)
	rpc.HandleStream(s.server, items, s.items)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	at, err := s.server.Listen(ctx, h.server.Calls)
	if err != nil {
		return s, err
	}
	if s.listener, err = rdmanet.Listen(ctx, h.rt, h.server.Streams); err != nil {
		return s, err
	}
	s.streams.Go(s.accept)
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

// take records the receipt of a request.
func (s *servant) take(b []byte, once bool) (q question, err error) {
	if q, err = unpack(b); err != nil {
		s.fault("%v", err)
		return q, err
	}
	from := source{q.Client, q.Worker}
	if s.calls.add(from, q.Seq) && once {
		s.fault("request %d of worker %d of client %d was executed twice", q.Seq, q.Worker, q.Client)
	}
	for _, n := range q.Never {
		if came, _ := s.calls.has(from, n); came && n != 0 {
			s.fault("request %d of worker %d of client %d was executed; its caller has an error that says it was not", n, q.Worker, q.Client)
		}
	}
	return q, nil
}

func (s *servant) echo(once bool) func(_ context.Context, b, reply []byte) ([]byte, error) {
	return func(_ context.Context, b, reply []byte) ([]byte, error) {
		q, err := s.take(b, once)
		if err == nil {
			s.count("calls answered", nil)
		}
		return append(reply, q.answer(0)...), err
	}
}

func (s *servant) ask(_ context.Context, b *rpc.Bytes) (*rpc.Bytes, error) {
	q, err := s.take(*b, true)
	a := rpc.Bytes(q.answer(0))
	return &a, err
}

func (s *servant) items(_ context.Context, b *rpc.Bytes, out *rpc.Sender[rpc.Bytes]) error {
	q, err := s.take(*b, true)
	if err != nil {
		return err
	}
	for i := range q.Count {
		item := rpc.Bytes(q.answer(uint64(i)))
		if err := out.Send(&item); err != nil {
			return err
		}
	}
	return nil
}

// audit compares a client's knowledge of its messages with the received ones.
func (s *servant) audit(_ context.Context, b, reply []byte) ([]byte, error) {
	var f fates
	if _, err := binary.Decode(b, binary.BigEndian, &f); err != nil {
		s.fault("an audit: %v", err)
		return nil, err
	}
	if f.Server != s.number {
		return reply, nil // another process knows
	}
	from := source{f.Client, f.Part}
	for _, tag := range f.Tags[:f.N] {
		if came, known := s.messages.has(from, tag); known && came != f.Came {
			s.fault("message %d of %v: delivered is reported as %v, and it is %v", tag, from, f.Came, came)
		}
	}
	return reply, nil
}

// listener owns a connection of messages.
type listener struct {
	s    *servant
	from source
	last uint64 // last received tag
}

// retained selects the messages that are retained for a while: one of so many.
const retained = 16

// Receive implements actor.Actor.
func (l *listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.ConnectRequest:
		if _, err := binary.Decode(m.PrivateData, binary.BigEndian, &l.from); err != nil {
			l.s.fault("a request says %q: %v", m.PrivateData, err)
		}
		ctx.Respond(&rdma.Accept{PrivateData: binary.BigEndian.AppendUint64(nil, l.s.number)})
	case *rdma.Received:
		n, err := unpackNote(l.from, m.Data)
		if err != nil {
			l.s.fault("%v", err)
			return
		}
		if n.Tag <= l.last {
			l.s.fault("message %d of %v comes behind %d on one connection", n.Tag, l.from, l.last)
		}
		l.last = n.Tag
		if l.s.messages.add(l.from, n.Tag) && !n.Idempotent {
			l.s.fault("message %d of %v has come twice, and is not idempotent", n.Tag, l.from)
		}
		l.s.count("messages taken", nil)
		ctx.Respond(rdma.NewSend(note{Tag: n.Tag}.pack(l.from, 16)))
		if n.Tag%retained == 0 {
			time.AfterFunc(time.Duration(n.Tag%7)*20*time.Millisecond, m.Retain().Release)
		}
	case *rdma.SendFailed:
		if !errors.Is(m, rdma.ErrFlushed) {
			l.s.fault("an acknowledgement for %v: %v", l.from, m)
		}
	}
}

// accept serves streams until the listener is closed.
func (s *servant) accept() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.fault("accept: %v", err)
			return
		}
		s.streams.Go(func() { s.count("streams served", s.stream(c.(*rdmanet.Conn))) })
	}
}

// stream serves one stream.
func (s *servant) stream(c *rdmanet.Conn) (err error) {
	defer func() {
		if err != nil {
			_ = c.SetLinger(0)
		}
		_ = c.Close()
	}()
	var h transfer
	head := make([]byte, transferSize)
	if err := s.readAll(c, head); err != nil {
		return err
	}
	if _, err := binary.Decode(head, binary.BigEndian, &h); err != nil {
		return wrong("a stream's head: %w", err)
	}
	buf := make([]byte, h.Size)
	if h.How == endless {
		for i := uint64(0); ; i++ {
			if err := s.readChunk(c, &h, buf, false, i); err != nil {
				return err
			}
			if _, err := c.Write(h.chunk(buf, true, i)); err != nil {
				return err
			}
		}
	}
	for i := range uint64(h.Chunks) {
		if err := s.readChunk(c, &h, buf, false, i); err != nil {
			return err
		}
	}
	err = answer(c, &h, buf)
	if h.How == abandoned && errors.Is(err, unix.ECONNRESET) {
		return nil // as announced
	}
	return err
}

// answer sends the chunks of a stream's answer and its FIN, and reads the client's FIN.
func answer(c *rdmanet.Conn, t *transfer, buf []byte) error {
	for i := range uint64(t.Chunks) {
		if _, err := c.Write(t.chunk(buf, true, i)); err != nil {
			return err
		}
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	return readFIN(c, t, buf)
}
