package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// slowFor is how long a member may leave its lines unread before the server lets it go.
const slowFor = 10 * time.Second

// server is the actor that owns the listener and every connection to it. It runs on the runtime's loop.
type server struct {
	rt       *rdma.Runtime
	addr     string
	rooms    *rooms
	peers    map[string]*peer // by the connection's PID
	reserved map[string]bool  // nicknames of connections that are being set up
	started  chan<- error     // gets the outcome of Serve, once
	log      *slog.Logger

	last    line // the line encoded last, since one line goes to many
	encoded []byte
}

// peer is a connection and who speaks on it.
type peer struct {
	pid     *actor.PID
	hello   hello
	member  *member // nil until established
	slow    bool    // its queue is full
	skipped int     // lines it missed while it was slow
}

// tooSlow asks whether a peer is still slow.
type tooSlow struct{ peer *peer }

func newServer(rt *rdma.Runtime, addr string, log *slog.Logger, started chan<- error) *server {
	return &server{
		rt: rt, addr: addr, rooms: newRooms(), peers: make(map[string]*peer), reserved: make(map[string]bool),
		started: started, log: log,
	}
}

// Receive handles what the listener and the connections tell; the Sender is the identifier it is about.
func (s *server) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(s.rt.CreateID(ctx.Self()), &rdma.Serve{Addr: s.addr})
	case *rdma.Listening:
		s.log.Info("chat server", "listening", m.Local)
		s.tellStarted(nil)
	case *rdma.ConnectRequest:
		s.request(ctx, m)
	case *rdma.Established:
		s.established(ctx)
	case *rdma.Received:
		s.received(ctx, m)
	case *rdma.SendFailed:
		s.sendFailed(ctx, m)
	case *rdma.Writable:
		s.writable(ctx)
	case *tooSlow:
		s.drop(ctx, m.peer)
	case *rdma.Closed:
		s.closed(ctx, m)
	case rdma.Failure:
		s.log.Debug("chat server", "failure", m)
		s.tellStarted(m)
	}
}

func (s *server) tellStarted(err error) {
	if s.started != nil {
		s.started <- err
		s.started = nil
	}
}

// request answers somebody who wants in.
func (s *server) request(ctx actor.Context, m *rdma.ConnectRequest) {
	h, err := decodeHello(m.PrivateData)
	if err == nil {
		err = s.rooms.admit(h)
	}
	if err == nil && s.reserved[h.nick] {
		err = fmt.Errorf("the nickname %q is taken", h.nick)
	}
	if err != nil {
		ctx.Respond(&rdma.Reject{PrivateData: []byte(truncate(err.Error(), 120))})
		return
	}
	s.reserved[h.nick] = true
	s.peers[ctx.Sender().Id] = &peer{pid: ctx.Sender(), hello: h}
	ctx.Respond(&rdma.Accept{})
}

func (s *server) established(ctx actor.Context) {
	p := s.peers[ctx.Sender().Id]
	if p == nil || p.member != nil {
		return
	}
	delete(s.reserved, p.hello.nick)
	m, out := s.rooms.join(p.hello, p)
	p.member = m
	s.log.Info("joined", "nick", m.nick, "room", m.room)
	s.deliver(ctx, out)
}

func (s *server) received(ctx actor.Context, m *rdma.Received) {
	p := s.peers[ctx.Sender().Id]
	if p == nil || p.member == nil {
		return
	}
	l, err := decode(m.Data)
	if err != nil {
		s.deliver(ctx, []delivery{{p.member, notice(p.member.room, "%v", err)}})
		return
	}
	s.deliver(ctx, s.rooms.receive(p.member, l))
}

// deliver sends lines. A member whose queue is full misses lines until there is room again.
func (s *server) deliver(ctx actor.Context, out []delivery) {
	for _, d := range out {
		p := d.to.conn.(*peer)
		if p.slow {
			p.skipped++
			continue
		}
		if s.encoded == nil || d.line != s.last {
			s.last, s.encoded = d.line, d.line.encode()
		}
		ctx.Request(p.pid, rdma.NewSend(s.encoded))
	}
}

func (s *server) sendFailed(ctx actor.Context, m *rdma.SendFailed) {
	p := s.peers[ctx.Sender().Id]
	if p == nil || !errors.Is(m, rdma.ErrQueueFull) {
		return // the connection is over: Closed tells
	}
	p.skipped++
	if !p.slow {
		p.slow = true
		rdma.After(ctx, slowFor, &tooSlow{p})
	}
}

func (s *server) writable(ctx actor.Context) {
	p := s.peers[ctx.Sender().Id]
	if p == nil || !p.slow {
		return
	}
	p.slow = false
	missed := p.skipped
	p.skipped = 0
	if p.member != nil {
		s.deliver(ctx, []delivery{{p.member, notice(p.member.room, "you were too slow and missed %d lines", missed)}})
	}
}

// drop lets a member go that has read nothing for too long; the room is told.
func (s *server) drop(ctx actor.Context, p *peer) {
	if !p.slow || s.peers[p.pid.Id] != p {
		return
	}
	s.log.Warn("dropped", "nick", p.hello.nick, "missed", p.skipped)
	s.leave(ctx, p, " (too slow: it read nothing for "+slowFor.String()+")")
	ctx.Request(p.pid, &rdma.DestroyID{})
}

func (s *server) closed(ctx actor.Context, m *rdma.Closed) {
	if p := s.peers[ctx.Sender().Id]; p != nil {
		s.leave(ctx, p, "")
		return
	}
	if m.Err != nil {
		s.tellStarted(m.Err)
	}
}

func (s *server) leave(ctx actor.Context, p *peer, why string) {
	delete(s.peers, p.pid.Id)
	if p.member == nil {
		delete(s.reserved, p.hello.nick)
		return
	}
	s.deliver(ctx, s.rooms.leave(p.member, why))
}
