package main

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/chat/room"
)

const (
	// helloFor limits how long a client may be connected without a hello.
	helloFor = 5 * time.Second
	// window is how many lines for one member are handed to its connection; the others are in the
	// member's backlog.
	window = 128
	// most is how many bytes may wait for one member, and all for all members. A member may have as
	// many as are left of all, and always least. Lines beyond that are dropped and counted.
	most  = 1 << 20
	all   = 256 << 20
	least = 16 << 10
	// patience is how long a line may be in a backlog before its member is disconnected. It may
	// take twice as long, because a backlog is checked only once in that time.
	patience = 10 * time.Second
)

// server is the actor that owns the listener and every connection to it. It runs on the runtime's
// loop. No member waits for another. A member that does not read misses lines, and is disconnected
// in the end. If an address writes too fast, the lines beyond its pace are read later.
type server struct {
	rt      *rdma.Runtime
	addr    string
	rooms   *room.Rooms
	peers   map[string]*peer // keyed by the connection's PID
	sources map[netip.Addr]*source
	started chan<- outcome // receives the outcome of Serve, once
	log     *slog.Logger

	all     int // bytes that may wait for all members
	waiting int // bytes that are waiting
	spent   int // bytes that the current line has cost

	last    room.Line // the last line encoded, since one line goes to many
	encoded []byte
}

// outcome is the address at which a server listens, or why it does not.
type outcome struct {
	local rdma.Addr
	err   error
}

// peer is a connection and its member.
type peer struct {
	pid  *actor.PID
	id   rdma.Handle
	addr rdma.Addr
	// identity is the owner of the connection's key or certificate. "": it is not secured.
	identity string
	source   *source
	member   *room.Member // nil until its hello
	// lines beyond its pace: their credits are withheld, so in the end it cannot send
	retained []*rdma.Received
	lines    [][]byte // not yet taken; the bytes of one line are shared by all members
	// how many of lines are handed to the connection; the rest is the backlog
	sending int
	waiting int  // bytes of lines
	taken   int  // number of lines taken before these
	missed  int  // lines dropped since there was no room
	watched bool // a look message is scheduled
}

// The messages of the server to itself.
type (
	// resume continues with the retained lines.
	resume struct{ source *source }
	// forgive forgets an address that has no connections and owes nothing.
	forgive struct{ source *source }
	// look disconnects a peer that has not sent a hello, or has not taken that many lines.
	look struct {
		peer  *peer
		taken int
	}
)

func newServer(rt *rdma.Runtime, addr string, log *slog.Logger, started chan<- outcome) *server {
	return &server{
		rt: rt, addr: addr, rooms: room.NewRooms(), started: started, log: log, all: all,
		peers: make(map[string]*peer), sources: make(map[netip.Addr]*source),
	}
}

// Receive handles the events of the listener and of the connections. The Sender is the identifier
// that an event is about.
func (s *server) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(s.rt.CreateID(ctx.Self()), &rdma.Serve{Addr: s.addr})
	case *rdma.Listening:
		s.log.Info("chat server", "listening", m.Local)
		s.reportStarted(m.Local, nil)
	case *rdma.ConnectRequest:
		s.request(ctx, m)
	case *rdma.Established:
		s.established(ctx)
	case *rdma.Received:
		s.received(ctx, m)
	case *rdma.Sent:
		s.sent(ctx, 1)
	case *rdma.SendFailed: // the connection is over, and Closed follows
		s.sent(ctx, m.Sends)
	case *resume:
		m.source.waits = false
		s.resume(ctx, m.source)
	case *forgive:
		if src := m.source; src.peers == 0 && src.pace.TokensAt(rdma.LocalOf(ctx).Now()) >= burst && s.sources[src.addr] == src {
			delete(s.sources, src.addr)
		}
	case *look:
		s.look(ctx, m)
	case *census:
		m.answer <- s.people()
	case *rdma.Closed:
		s.closed(ctx, m)
	case rdma.Failure:
		s.log.Debug("chat server", "failure", m)
		s.reportStarted(rdma.Addr{}, m)
		if p := s.peers[ctx.Sender().Id]; p != nil { // not every failure ends the identifier
			s.drop(ctx, p, "")
		}
	}
}

func (s *server) reportStarted(local rdma.Addr, err error) {
	if s.started != nil {
		s.started <- outcome{local, err}
		s.started = nil
	}
}

// request answers a connection request. The client sends its hello after it is connected.
func (s *server) request(ctx actor.Context, m *rdma.ConnectRequest) {
	if string(m.PrivateData) != version {
		ctx.Respond(&rdma.Reject{PrivateData: []byte("this is a " + version + " server")})
		return
	}
	src := s.source(m.Peer.Source())
	if src.peers >= places-len(s.peers) {
		ctx.Respond(&rdma.Reject{PrivateData: []byte("too many are here, or from your address")})
		s.settle(ctx, src)
		return
	}
	src.peers++
	pid := ctx.Sender()
	s.peers[pid.Id] = &peer{pid: pid, id: m.Ident(), addr: m.Peer, identity: m.Identity, source: src}
	ctx.Respond(&rdma.Accept{})
}

func (s *server) established(ctx actor.Context) {
	if p := s.peers[ctx.Sender().Id]; p != nil {
		p.watched = true
		rdma.After(ctx, helloFor, &look{peer: p})
	}
}

// received queues a line, and handles it after those that are retained.
func (s *server) received(ctx actor.Context, m *rdma.Received) {
	p := s.peers[ctx.Sender().Id]
	if p == nil {
		return
	}
	p.retained = append(p.retained, m.Retain())
	if len(p.retained) == 1 {
		p.source.turns = append(p.source.turns, p)
		s.resume(ctx, p.source)
	}
}

// resume handles the lines of an address, at its pace, one line of each of its connections in turn.
func (s *server) resume(ctx actor.Context, src *source) {
	for !src.waits {
		p := src.next()
		if p == nil {
			return
		}
		m := p.retained[0]
		p.retained = p.retained[1:]
		s.spent = len(m.Data)
		s.handle(ctx, p, m.Data)
		m.Release()
		if len(p.retained) > 0 {
			src.turns = append(src.turns, p)
		}
		now := rdma.LocalOf(ctx).Now()
		src.pay(now, s.spent)
		if d := src.wait(now); d > 0 {
			src.waits = true
			rdma.After(ctx, d, &resume{src})
		}
	}
}

func (s *server) handle(ctx actor.Context, p *peer, data []byte) {
	l, err := room.Decode(data)
	switch {
	case p.member == nil:
		s.hello(ctx, p, l, err)
	case err != nil:
		s.deliver(ctx, []room.Delivery{p.member.Notice("%v", err)})
	default:
		switch l.Type { // all names are checked, though not all are sent
		case "who":
			s.spent += perLine * p.member.Room.Len()
		case "rooms":
			s.spent += perLine * s.rooms.Len()
		}
		s.deliver(ctx, s.rooms.Receive(p.member, l))
	}
}

// hello admits a client, or answers why it does not.
func (s *server) hello(ctx actor.Context, p *peer, l room.Line, err error) {
	var out []room.Delivery
	if err == nil {
		p.member, out, err = s.rooms.Join(l.From, p.identity, l.Room, p)
	}
	if err != nil {
		ctx.Request(p.pid, rdma.NewSend(room.Line{Type: "refused", Text: err.Error()}.Encode()))
		ctx.Request(p.pid, &rdma.Close{})
		s.forget(ctx, p)
		return
	}
	s.log.Info("joined", "nick", p.member.Nick, "identity", p.identity, "room", p.member.Room.Name)
	s.deliver(ctx, out)
}

// deliver sends lines, after those already queued.
func (s *server) deliver(ctx actor.Context, out []room.Delivery) {
	for _, d := range out {
		p := d.To.Conn.(*peer)
		s.spent += perLine
		if p.missed > 0 || p.waiting > max(least, min(most, s.all-s.waiting)) {
			p.missed++
			s.watch(ctx, p)
			continue
		}
		if s.encoded == nil || d.Line != s.last {
			s.last, s.encoded = d.Line, d.Line.Encode()
		}
		s.spent += len(s.encoded)
		s.queue(ctx, p, s.encoded)
	}
}

// queue sends a line, or appends it to the backlog.
func (s *server) queue(ctx actor.Context, p *peer, encoded []byte) {
	p.lines = append(p.lines, encoded)
	p.waiting += len(encoded)
	s.waiting += len(encoded)
	s.pump(ctx, p)
	if len(p.lines) > p.sending {
		s.watch(ctx, p)
	}
}

// watch schedules a look at p after patience. By then p must have taken the lines that wait for it
// now.
func (s *server) watch(ctx actor.Context, p *peer) {
	if !p.watched {
		p.watched = true
		rdma.After(ctx, patience, &look{p, p.taken + len(p.lines)})
	}
}

// pump hands a connection as many lines as the window allows.
func (s *server) pump(ctx actor.Context, p *peer) {
	for p.sending < min(window, len(p.lines)) {
		send := rdma.NewSend(p.lines[p.sending])
		send.Notify = true
		ctx.Request(p.pid, send)
		p.sending++
	}
}

// sent removes n lines that were sent, or can no longer be sent.
func (s *server) sent(ctx actor.Context, n int) {
	p := s.peers[ctx.Sender().Id]
	if p == nil {
		return
	}
	n = min(n, p.sending)
	for _, l := range p.lines[:n] {
		p.waiting -= len(l)
		s.waiting -= len(l)
	}
	clear(p.lines[:n])
	p.lines = p.lines[n:]
	p.sending -= n
	p.taken += n
	s.pump(ctx, p)
	if len(p.lines) > p.sending || p.missed == 0 {
		return
	}
	notice := p.member.Notice("%s left out: you do not read as fast", room.Plural(p.missed, "line"))
	p.missed = 0
	s.deliver(ctx, []room.Delivery{notice})
}

// look drops a member that does not read, or a client that has not sent a hello.
func (s *server) look(ctx actor.Context, m *look) {
	p := m.peer
	switch {
	case s.peers[p.pid.Id] != p:
	case p.member == nil || p.taken < m.taken:
		s.log.Warn("dropped", "who", p.pid.Id, "waiting", p.waiting)
		s.drop(ctx, p, " (too slow)")
	default:
		p.watched = false
		if len(p.lines) > p.sending || p.missed > 0 {
			s.watch(ctx, p)
		}
	}
}

// drop ends a connection.
func (s *server) drop(ctx actor.Context, p *peer, why string) {
	ctx.Request(p.pid, &rdma.DestroyID{})
	s.leave(ctx, p, why)
}

func (s *server) closed(ctx actor.Context, m *rdma.Closed) {
	if p := s.peers[ctx.Sender().Id]; p != nil {
		s.leave(ctx, p, "")
		return
	}
	if m.Err != nil {
		s.reportStarted(rdma.Addr{}, m.Err)
	}
}

// leave removes the member from its room.
func (s *server) leave(ctx actor.Context, p *peer, why string) {
	s.forget(ctx, p)
	if p.member != nil {
		s.deliver(ctx, s.rooms.Leave(p.member, why))
	}
}

// forget releases the resources of a closed connection.
func (s *server) forget(ctx actor.Context, p *peer) {
	delete(s.peers, p.pid.Id)
	s.waiting -= p.waiting
	for _, m := range p.retained {
		m.Release()
	}
	p.retained, p.lines = nil, nil
	p.source.peers--
	s.settle(ctx, p.source)
}

// settle removes an address without connections as soon as it owes nothing.
func (s *server) settle(ctx actor.Context, src *source) {
	if src.peers == 0 {
		rdma.After(ctx, forgiven, &forgive{src})
	}
}
