package main

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/time/rate"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	// helloFor is how long somebody may be connected without a word of who they are.
	helloFor = 5 * time.Second
	// pace and burst are how many lines a second of one member are handled, and how many at once.
	// What is beyond waits with its sender.
	pace  = 1000
	burst = 100
	// window is how many lines for one member are with its connection; others are in its backlog.
	window = 128
	// most is how many bytes a backlog holds. What comes then is left out, and counted.
	most = 1 << 20
	// patience is how long a line may be in a backlog before its member is let go; it is looked at
	// every so often, so that it can be twice as long.
	patience = 10 * time.Second
)

// server is the actor that owns the listener and every connection to it. It runs on the runtime's
// loop. Nobody waits for anybody else: a member that does not read misses lines, and is let go; one
// that writes too fast has what is beyond its pace read later.
type server struct {
	rt      *rdma.Runtime
	addr    string
	rooms   *rooms
	peers   map[string]*peer // by the connection's PID
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
	member  *member          // nil until its hello
	pace    *rate.Limiter    // of what it sends
	held    []*rdma.Received // beyond its pace: their credits stay away, so it can send no more
	sending int              // lines with the connection
	taken   int              // lines that have left it
	backlog [][]byte         // lines that wait; the bytes are shared by all members
	waiting int              // bytes in backlog
	missed  int              // lines left out since the backlog was full
	watched bool             // a look is due
}

// The messages of the server to itself.
type (
	// resume goes on with what is held.
	resume struct{ peer *peer }
	// look lets a peer go that has not said hello, or not taken so many lines.
	look struct {
		peer  *peer
		taken int
	}
)

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
	case *resume:
		s.resume(ctx, m.peer)
	case *look:
		s.look(ctx, m)
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

// request answers somebody who wants in. Who they are they say when they are connected.
func (s *server) request(ctx actor.Context, m *rdma.ConnectRequest) {
	if string(m.PrivateData) != version {
		ctx.Respond(&rdma.Reject{PrivateData: []byte("this is a " + version + " server")})
		return
	}
	ctx.Respond(&rdma.Accept{})
}

func (s *server) established(ctx actor.Context) {
	p := &peer{pid: ctx.Sender(), pace: rate.NewLimiter(pace, burst), watched: true}
	s.peers[p.pid.Id] = p
	rdma.After(ctx, helloFor, &look{peer: p})
}

// received takes a line, behind those that are held.
func (s *server) received(ctx actor.Context, m *rdma.Received) {
	p := s.peers[ctx.Sender().Id]
	if p == nil {
		return
	}
	p.held = append(p.held, m.Retain())
	if len(p.held) == 1 {
		s.resume(ctx, p)
	}
}

// resume handles what a member has sent, at its pace.
func (s *server) resume(ctx actor.Context, p *peer) {
	for len(p.held) > 0 {
		if !p.pace.AllowN(rdma.Now(ctx), 1) {
			rdma.After(ctx, time.Second/pace, &resume{p})
			return
		}
		m := p.held[0]
		p.held = p.held[1:]
		s.handle(ctx, p, m.Data)
		m.Release()
	}
}

func (s *server) handle(ctx actor.Context, p *peer, data []byte) {
	l, err := decode(data)
	switch {
	case p.member == nil:
		s.hello(ctx, p, l, err)
	case err != nil:
		s.deliver(ctx, []delivery{p.member.notice("%v", err)})
	default:
		s.deliver(ctx, s.rooms.receive(p.member, l))
	}
}

// hello lets somebody in, or says why not.
func (s *server) hello(ctx actor.Context, p *peer, l line, err error) {
	var out []delivery
	if err == nil {
		p.member, out, err = s.rooms.join(hello{nick: l.From, room: l.Room}, p)
	}
	if err != nil {
		ctx.Request(p.pid, rdma.NewSend(line{Type: "refused", Text: err.Error()}.encode()))
		ctx.Request(p.pid, &rdma.Close{})
		s.forget(p)
		return
	}
	s.log.Info("joined", "nick", p.member.nick, "room", p.member.room.name)
	s.deliver(ctx, out)
}

// deliver sends lines, or puts them behind those that wait.
func (s *server) deliver(ctx actor.Context, out []delivery) {
	for _, d := range out {
		p := d.to.conn.(*peer)
		if p.missed > 0 || p.waiting > most {
			p.missed++
			continue
		}
		if s.encoded == nil || d.line != s.last {
			s.last, s.encoded = d.line, d.line.encode()
		}
		s.queue(ctx, p, s.encoded)
	}
}

// queue sends a line when its turn has come.
func (s *server) queue(ctx actor.Context, p *peer, encoded []byte) {
	p.backlog = append(p.backlog, encoded)
	p.waiting += len(encoded)
	s.pump(ctx, p)
	if len(p.backlog) > 0 && !p.watched {
		s.watch(ctx, p)
	}
}

// watch has a look at p later: it is to have taken by then what it has been sent by now.
func (s *server) watch(ctx actor.Context, p *peer) {
	p.watched = true
	rdma.After(ctx, patience, &look{p, p.taken + p.sending + len(p.backlog)})
}

// pump gives a connection as many lines as the window allows.
func (s *server) pump(ctx actor.Context, p *peer) {
	for p.sending < window && len(p.backlog) > 0 {
		send := rdma.NewSend(p.backlog[0])
		send.Notify = true
		ctx.Request(p.pid, send)
		p.sending++
		p.waiting -= len(p.backlog[0])
		p.backlog[0] = nil
		p.backlog = p.backlog[1:]
	}
	if len(p.backlog) > 0 {
		return
	}
	p.backlog = nil
	if n := p.missed; n > 0 {
		p.missed = 0
		s.deliver(ctx, []delivery{p.member.notice("%s left out: you do not read as fast", plural(n, "line"))})
	}
}

func (s *server) sent(ctx actor.Context) {
	if p := s.peers[ctx.Sender().Id]; p != nil {
		p.sending--
		p.taken++
		s.pump(ctx, p)
	}
}

// look drops a member that does not read, or whoever says nothing.
func (s *server) look(ctx actor.Context, m *look) {
	p := m.peer
	switch {
	case s.peers[p.pid.Id] != p:
	case p.member == nil || p.taken < m.taken:
		s.log.Warn("dropped", "who", p.pid.Id, "waiting", p.waiting)
		ctx.Request(p.pid, &rdma.DestroyID{})
		s.leave(ctx, p, " (too slow)")
	case len(p.backlog) > 0:
		s.watch(ctx, p)
	default:
		p.watched = false
	}
}

func (s *server) closed(ctx actor.Context, m *rdma.Closed) {
	if p := s.peers[ctx.Sender().Id]; p != nil {
		s.leave(ctx, p, "")
		return
	}
	if m.Err != nil {
		s.tellStarted(rdma.Addr{}, m.Err)
	}
}

// leave tells the room.
func (s *server) leave(ctx actor.Context, p *peer, why string) {
	s.forget(p)
	if p.member != nil {
		s.deliver(ctx, s.rooms.leave(p.member, why))
	}
}

// forget gives back what is held of a connection that is over.
func (s *server) forget(p *peer) {
	delete(s.peers, p.pid.Id)
	for _, m := range p.held {
		m.Release()
	}
	p.held = nil
}
