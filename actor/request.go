package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// handleRequest handles a connection request for a listener of this loop: it rejects it, takes it,
// or passes it to the loop where the connection shall live.
func (l *loop) handleRequest(id *cmid.ID, r *cmid.ConnectRequest) {
	listener := l.ch.ID(r.Listener)
	var from *ident
	if listener != nil {
		from, _ = listener.Context.(*ident)
	}
	if from == nil {
		l.rejectID(id)
		return
	}
	in := &incoming{
		id: id, r: r, cfg: from.connectionConfig(), handler: from.cfg.Handler, via: from.listenerCounts(), owner: from.owner.pid, box: from.owner.box,
		listener: r.Listener, name: from.pid.Id,
	}
	in.via.countRequest(fateRequested)
	if from.isEnding() || l.isClosing() {
		l.refuse(in, fateClosing, wire.RefusedClosing, "")
		return
	}
	if !l.takeRate(r.Peer) {
		l.refuse(in, fateRate, wire.RefusedRate, "rdma: too many requests of one address (Limits.RequestRate): rejected")
		return
	}
	if err := wire.CheckVersion(r.PrivateData); err != nil && !in.cfg.Raw && !id.Datagram() {
		l.refuse(in, fateForeign, wire.RefusedVersion, "rdma: "+err.Error()+": rejected")
		return
	}
	if in.cfg.RefuseForeign && !in.cfg.Raw {
		if _, _, ok := wire.ParseHello(r.PrivateData, id.Limits().Padded); !ok {
			l.rt.log.Warn("rdma: a foreign peer was rejected (RefuseForeign)", "id", id.Handle(), "peer", r.Peer, "local", r.Local)
			l.countRefused(in.id, in.via, fateForeign)
			l.rejectID(id)
			return
		}
	}
	if !l.checkMode(in) {
		return
	}
	if !l.rt.countIfRoom() {
		l.refuse(in, fateLimits, wire.RefusedLimits, tooMany)
		return
	}
	if in.cfg.isSecured() {
		in.route = from.cfg.Route
		if from.cfg.Place != nil && !l.placeRequest(from, in) {
			return
		}
	} else if from.cfg.Route != nil && !l.routeRequest(from, in) {
		return
	}
	to := l.placeFor(in)
	if to != l {
		if l.passRequest(in, to) {
			return
		}
		to.assigned.Add(-1)
		l.assigned.Add(1)
	}
	l.takeRequest(in)
}

// routeRequest calls the listener's Route to choose the owner. False: the request was rejected.
func (l *loop) routeRequest(from *ident, in *incoming) bool {
	owner, reject, ok := l.askRoute(from, in)
	if ok && reject == nil && owner != nil {
		if err := l.rt.CheckOwner(owner); err != nil {
			l.rt.log.Error("rdma: Route has chosen an owner that cannot receive messages", "err", err)
			l.rejectFailed(in)
			return false
		}
	}
	switch {
	case !ok:
		return false
	case reject != nil:
		cfg := *in.cfg
		cfg.Manual = false
		in.cfg, in.owner, in.box, in.handler = &cfg, nil, nil, nil
		l.assigned.Add(1)
		if it := l.takeRequest(in); it != nil {
			if _, err := it.privateData(it.peer.mode, reject.PrivateData, it.id.Limits().RejectData); err != nil {
				it.l.rt.log.Error("rdma: Route has rejected a request with too much private data: it is rejected without",
					"id", it.id.Handle(), "peer", in.r.Peer, "err", err)
				reject = &cmid.Reject{}
			}
			it.box.PostUserMessage(reject)
		}
		return false
	case owner != nil:
		in.owner, in.box, in.handler = owner, l.rt.registry.Find(owner), nil
	}
	return true
}

// rejectFailed rejects a request because of the listener's code.
func (l *loop) rejectFailed(in *incoming) {
	l.rt.count.Add(-1)
	l.refuse(in, fateFailed, wire.RefusedFailed, "")
}

// askRoute calls Route. Not ok: it has panicked, and the request was rejected.
func (l *loop) askRoute(from *ident, in *incoming) (owner *actor.PID, reject *cmid.Reject, ok bool) {
	r := *in.r
	if !in.cfg.Raw {
		_, r.PrivateData, ok = wire.ParseHello(r.PrivateData, in.id.Limits().Padded)
		r.Foreign = !ok
	}
	ok = l.askListener(in, "Route", l.rejectFailed, func() { owner, reject = from.cfg.Route(&r) })
	return owner, reject, ok
}

// placeRequest calls the listener's Place to choose the loop of a request whose peer is not
// authenticated yet. False: the request was rejected.
func (l *loop) placeRequest(from *ident, in *incoming) bool {
	var with *actor.PID
	if in.hint != 0 && !l.askListener(in, "Place", l.rejectFailed, func() { with = from.cfg.Place(in.hint) }) {
		return false
	}
	in.near = l.rt.loopOf(l.rt.registry.Find(with))
	return true
}

// takeRequest makes the actor of a new connection and notifies the owner of its listener, or the
// handler that is spawned for it. nil: it was rejected.
func (l *loop) takeRequest(in *incoming) *ident {
	closing := l.isClosing()
	full, noRoom := !l.requests.MayLocal(in.listener, l.rt.cfg.Limits.PendingRequests), l.noRoom(in)
	crowded := false
	if !closing && !full && !noRoom {
		if crowded = in.cfg.isSecured() && !l.countStranger(in); !crowded {
			return l.admitRequest(in)
		}
	}
	l.assigned.Add(-1) // before the peer can try again
	l.rt.count.Add(-1)
	switch {
	case closing:
		l.refuse(in, fateClosing, wire.RefusedClosing, "")
	case full:
		l.refuse(in, fateLimits, wire.RefusedLimits, tooMany)
	case crowded:
		l.rejectUnauthenticated(in, in.cfg.helloFeatures(0), wire.RefusedHandshakes, errCrowded)
	default:
		l.refuse(in, fateMemory, wire.RefusedLimits,
			"rdma: no memory to receive another connection's messages into (ReceiveMemory, MaxMessage): rejected")
	}
	return nil
}

// noRoom reports whether a connection would receive into memory that is reserved for existing ones.
// If these are many, a peer with a hello is asked for small messages; one without cannot be.
func (l *loop) noRoom(in *incoming) bool {
	switch {
	case in.id.Datagram():
		return false
	case l.Full():
		return true
	case !l.CrowdedFor(in.cfg.MaxMessage):
		return false
	}
	_, _, ok := wire.ParseHello(in.r.PrivateData, in.id.Limits().Padded)
	return in.cfg.Raw || !ok
}

func (l *loop) admitRequest(in *incoming) *ident {
	var to owner // none until its peer is authenticated, if it has to be
	switch {
	case in.cfg.isSecured():
	case in.handler != nil:
		var ok bool
		to, ok = l.askHandler(in, func(in *incoming) {
			l.assigned.Add(-1) // before the peer can try again
			l.rejectFailed(in)
		})
		if !ok {
			return nil
		}
	default:
		to = l.rt.newOwner(l, in.owner)
	}
	it := l.rt.newIdent(l, to, in.cfg)
	it.id, it.asked, it.counted = in.id, in, true
	in.due = l.el.Now().Add(it.cfg.AcceptTimeout)
	in.id.Context = it
	if err := it.cfg.Transport.Set(it.id); err != nil {
		it.l.rt.log.Warn("rdma: the device refuses a request's Transport", "id", in.id.Handle(), "peer", in.r.Peer, "err", err)
	}
	it.lastState = in.id.State()
	l.requests.Take(in.listener)
	it.pid = l.rt.spawnActor(it)
	l.addIdent(it) // Shutdown may list the identifiers before Started
	it.resetTimer()
	if in.cfg.isSecured() {
		it.challenge(in)
		return it
	}
	it.peer = in.takeTerms()
	it.notifyOwner(in.r)
	return it
}

const tooMany = "rdma: too many requests or identifiers (Limits): rejected"

// refuse counts and rejects a request, and logs text unless it is empty. A peer with a hello gets
// the reason, and nothing else, because it is not authenticated.
func (l *loop) refuse(in *incoming, f fate, why wire.Refusal, text string) {
	if text != "" {
		l.rt.log.Warn(text, "id", in.id.Handle(), "peer", in.r.Peer, "local", in.r.Local)
	}
	l.countRefused(in.id, in.via, f)
	reject := new(cmid.Reject)
	if in.cfg.isSecured() {
		reject.PrivateData = in.cfg.refusalData(in.cfg.helloFeatures(0), why)
	} else if _, _, ok := wire.ParseHello(in.r.PrivateData, in.id.Limits().Padded); !in.cfg.Raw && (ok || why == wire.RefusedVersion) {
		reject.PrivateData = why.Reject()
	}
	in.id.Do(reject, nil)
	l.destroyOrphan(in.id, nil)
}

// rejectID rejects a request that has no actor.
func (l *loop) rejectID(id *cmid.ID) {
	id.Do(&cmid.Reject{}, nil)
	l.destroyOrphan(id, nil)
}

// passRequest sends a request to another loop. False: it is still here, because its device cannot,
// or the other loop has ended.
func (l *loop) passRequest(in *incoming, to *loop) bool {
	m := &move{incoming: in, rt: l.rt, from: l, to: to}
	// Both loops count it before it is known that no shutdown has begun: a later shutdown finds
	// neither of them empty.
	m.from.coming.Add(1)
	m.to.coming.Add(1)
	if l.rt.closing.Load() {
		m.uncountComing()
		return false
	}
	var err error
	if m.detached, err = in.id.Detach(); err != nil {
		m.uncountComing()
		return false
	}
	if to.el.Post(m.arrive) == nil {
		return true
	}
	defer m.uncountComing()
	if err = l.ch.Attach(m.detached); err != nil {
		m.giveUp(err)
		return true
	}
	return false
}

// move is a request on its way from one loop to another. Its identifier belongs to the goroutine
// that runs one of the move's functions, and in between to the queue of the loop to which that was
// posted.
type move struct {
	*incoming
	rt       *Runtime
	from, to *loop
	detached *cmid.Detached
}

// arrive runs the part of a move that happens on the other loop.
func (m *move) arrive() {
	if err := m.to.ch.Attach(m.detached); err != nil {
		if m.from.el.Post(m.returnRequest) != nil {
			defer m.uncountComing()
			m.giveUp(err)
		}
		return
	}
	defer m.uncountComing()
	m.to.arrived.Add(1)
	it := m.to.takeRequest(m.incoming)
	if it != nil {
		it.callObserver(func(o Observer) { o.Moved(it.pid, it.id.Handle(), m.from.el.Name(), m.to.el.Name()) })
	}
}

// returnRequest runs on the loop from which the request came, when the other one could not take it.
func (m *move) returnRequest() {
	defer m.uncountComing()
	if err := m.from.ch.Attach(m.detached); err != nil {
		m.giveUp(err)
		return
	}
	m.to.assigned.Add(-1)
	m.from.assigned.Add(1)
	m.from.takeRequest(m.incoming)
}

// giveUp ends a request that neither loop can take, because both have ended. Its peer sees the
// connection end.
func (m *move) giveUp(err error) {
	m.to.assigned.Add(-1) // before the peer can try again
	m.rt.count.Add(-1)
	m.via.countRequest(fateFailed)
	m.detached.Destroy()
	m.rt.log.Warn("rdma: a request was given up between two loops", "id", m.id.Handle(), "peer", m.r.Peer, "err", Brief(err))
}

// uncountComing records that the request is no longer between the loops. Shutdown checks again
// whether they are empty.
func (m *move) uncountComing() {
	for _, l := range [...]*loop{m.from, m.to} {
		l.coming.Add(-1)
		if l.isClosing() {
			// an error means that the loop has ended: Shutdown does not wait for it
			_ = l.el.Post(l.checkEmptied)
		}
	}
}

// takeRate counts a request from a. Not ok: there are too many in this time. Each costs its
// listener's loop some work, and a secured one a computation, whatever its outcome. A process of
// this machine takes processor time from the loop anyway, whether it connects or not.
func (l *loop) takeRate(a Addr) (ok bool) {
	rate := l.rt.cfg.Limits.RequestRate
	return rate < 0 || onLoopback(a) || l.rates.Take(a.Source(), rate, l.el.Now())
}
