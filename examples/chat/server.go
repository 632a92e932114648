package main

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	// window is how many lines of one member are with its connection at a time; the others wait in its backlog.
	window = 128
	// congested is the backlog at which those who write are slowed: what they send next is not read until it has shrunk.
	congested = 256
	// most is the backlog that nobody is allowed.
	most = 4096
	// patience is how long one member may slow the others. After that it only hurts itself.
	patience = 2 * time.Second
	// slowFor is how long a member may be behind before the server lets it go.
	slowFor = 10 * time.Second
)

// server is the actor that owns the listener and every connection to it. It runs on the runtime's loop.
type server struct {
	rt      *rdma.Runtime
	addr    string
	rooms   *rooms
	peers   map[string]*peer // by the connection's PID
	held    []heldLine       // read, not handled: somebody is congested
	behind  int              // congested members that the others wait for
	started chan<- outcome   // gets the outcome of Serve, once
	log     *slog.Logger

	last    line // the line encoded last, since one line goes to many
	encoded []byte
}

// outcome is where a server listens, or why it does not.
type outcome struct {
	local rdma.Addr
	err   error
}

// peer is a connection and who speaks on it.
type peer struct {
	pid     *actor.PID
	hello   hello
	member  *member  // nil until established
	sending int      // lines with the connection
	backlog [][]byte // lines that wait; the bytes are shared by all members
	slow    bool     // its backlog is or was congested and is not yet half gone
	spell   int      // how often it was slow
	alone   bool     // it has been slow for too long: nobody waits for it
}

// heldLine is a line whose sender waits.
type heldLine struct {
	from *peer
	msg  *rdma.Received
}

// stillSlow asks after a while whether a member is still slow.
type stillSlow struct {
	peer  *peer
	spell int  // the one it is about: a member may have caught up, and be slow again
	last  bool // then let it go
}

func newServer(rt *rdma.Runtime, addr string, log *slog.Logger, started chan<- outcome) *server {
	return &server{
		rt: rt, addr: addr, rooms: newRooms(), peers: make(map[string]*peer), started: started, log: log,
	}
}

// Receive handles what the listener and the connections tell; the Sender is the identifier it is about.
func (s *server) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(s.rt.CreateID(ctx.Self()), &rdma.Serve{Addr: s.addr})
	case *rdma.Listening:
		s.log.Info("chat server", "listening", m.Local)
		s.tellStarted(m.Local, nil)
	case *rdma.ConnectRequest:
		s.request(ctx, m)
	case *rdma.Established:
		s.established(ctx)
	case *rdma.Received:
		s.received(ctx, m)
	case *rdma.Sent, *rdma.SendFailed: // failed: the connection is over, and Closed will tell
		s.sent(ctx)
	case *stillSlow:
		s.stillSlow(ctx, m)
	case *rdma.Closed:
		s.closed(ctx, m)
	case rdma.Failure:
		s.log.Debug("chat server", "failure", m)
		s.tellStarted(rdma.Addr{}, m)
	}
}

func (s *server) tellStarted(local rdma.Addr, err error) {
	if s.started != nil {
		s.started <- outcome{local, err}
		s.started = nil
	}
}

// request answers somebody who wants in.
func (s *server) request(ctx actor.Context, m *rdma.ConnectRequest) {
	h, err := decodeHello(m.PrivateData)
	if err == nil {
		err = s.rooms.reserve(h.nick)
	}
	if err != nil {
		ctx.Respond(&rdma.Reject{PrivateData: []byte(truncate(err.Error(), 120))})
		return
	}
	s.peers[ctx.Sender().Id] = &peer{pid: ctx.Sender(), hello: h}
	ctx.Respond(&rdma.Accept{})
}

func (s *server) established(ctx actor.Context) {
	p := s.peers[ctx.Sender().Id]
	if p == nil || p.member != nil {
		return
	}
	m, out := s.rooms.join(p.hello, p)
	p.member = m
	s.log.Info("joined", "nick", m.nick, "room", m.room)
	s.deliver(ctx, out)
}

// received takes a line, or holds it while somebody is behind: its credit stays away, so its sender waits.
func (s *server) received(ctx actor.Context, m *rdma.Received) {
	p := s.peers[ctx.Sender().Id]
	if p == nil || p.member == nil {
		return
	}
	if s.behind > 0 {
		s.held = append(s.held, heldLine{p, m.Retain()})
		return
	}
	s.handle(ctx, p, m.Data)
}

func (s *server) handle(ctx actor.Context, p *peer, data []byte) {
	l, err := decode(data)
	if err != nil {
		s.deliver(ctx, []delivery{{p.member, notice(p.member.room, "%v", err)}})
		return
	}
	s.deliver(ctx, s.rooms.receive(p.member, l))
}

// resume handles what was held, until somebody is behind again.
func (s *server) resume(ctx actor.Context) {
	for s.behind == 0 && len(s.held) > 0 {
		h := s.held[0]
		s.held[0] = heldLine{}
		s.held = s.held[1:]
		if s.peers[h.from.pid.Id] == h.from {
			s.handle(ctx, h.from, h.msg.Data)
		}
		h.msg.Release()
	}
}

// deliver sends lines, or puts them behind those that wait.
func (s *server) deliver(ctx actor.Context, out []delivery) {
	var stuck []*peer // let go when everybody has this line: that makes lines of its own
	for _, d := range out {
		p := d.to.conn.(*peer)
		if s.peers[p.pid.Id] != p {
			continue
		}
		if s.encoded == nil || d.line != s.last {
			s.last, s.encoded = d.line, d.line.encode()
		}
		p.backlog = append(p.backlog, s.encoded)
		s.pump(ctx, p)
		switch n := len(p.backlog); {
		case n == most:
			stuck = append(stuck, p)
		case n > congested && !p.slow:
			p.slow = true
			p.spell++
			s.behind++
			rdma.After(ctx, patience, &stillSlow{peer: p, spell: p.spell})
			rdma.After(ctx, slowFor, &stillSlow{peer: p, spell: p.spell, last: true})
		}
	}
	for _, p := range stuck {
		s.drop(ctx, p)
	}
}

// pump gives a connection as many lines as the window allows.
func (s *server) pump(ctx actor.Context, p *peer) {
	for p.sending < window && len(p.backlog) > 0 {
		send := rdma.NewSend(p.backlog[0])
		send.Notify = true
		ctx.Request(p.pid, send)
		p.sending++
		p.backlog[0] = nil
		p.backlog = p.backlog[1:]
	}
	if len(p.backlog) == 0 {
		p.backlog = nil
	}
}

func (s *server) sent(ctx actor.Context) {
	p := s.peers[ctx.Sender().Id]
	if p == nil {
		return
	}
	p.sending--
	s.pump(ctx, p)
	if p.slow && len(p.backlog) < congested/2 {
		s.caughtUp(p)
		s.resume(ctx)
	}
}

// caughtUp ends a member's slowness.
func (s *server) caughtUp(p *peer) {
	if p.slow && !p.alone {
		s.behind--
	}
	p.slow, p.alone = false, false
}

func (s *server) stillSlow(ctx actor.Context, m *stillSlow) {
	p := m.peer
	if !p.slow || p.spell != m.spell || s.peers[p.pid.Id] != p {
		return
	}
	if m.last {
		s.drop(ctx, p)
		return
	}
	if !p.alone {
		p.alone = true
		s.behind--
	}
	s.resume(ctx)
}

// drop lets a member go that does not read. The room is told.
func (s *server) drop(ctx actor.Context, p *peer) {
	if s.peers[p.pid.Id] != p {
		return
	}
	s.log.Warn("dropped", "nick", p.hello.nick, "waiting", len(p.backlog))
	p.backlog = nil
	s.leave(ctx, p, " (too slow)")
	ctx.Request(p.pid, &rdma.DestroyID{})
	s.resume(ctx)
}

func (s *server) closed(ctx actor.Context, m *rdma.Closed) {
	if p := s.peers[ctx.Sender().Id]; p != nil {
		s.leave(ctx, p, "")
		s.resume(ctx)
		return
	}
	if m.Err != nil {
		s.tellStarted(rdma.Addr{}, m.Err)
	}
}

func (s *server) leave(ctx actor.Context, p *peer, why string) {
	delete(s.peers, p.pid.Id)
	s.caughtUp(p)
	if p.member == nil {
		s.rooms.release(p.hello.nick)
		return
	}
	s.deliver(ctx, s.rooms.leave(p.member, why))
}
