package remoting

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
)

// link is the actor of one peer. It owns the reconnecting actor that keeps the connection, on one
// loop with it.
type link struct {
	n     *Node
	p     *peer
	self  *actor.PID
	local rdma.Local

	conn      *actor.PID // the reconnecting actor that was heard of last
	closing   bool       // it was asked to end
	bye       bool       // the node is shutting down, and what waits goes out first
	ended     bool
	counted   bool // in Node.unconnected
	wasOpen   bool // since it was remembered
	remembers bool // what the peer may answer, for Patience

	up       *reconnect.Up // nil: there is no connection
	number   uint64        // of the connection; each reconnecting actor begins its Generations anew
	greeting greeting
	asking   int    // calls of Config.Admit that have not returned
	queued   bool   // it is to be asked when one of these has returned
	askAgain bool   // Readmit was called meanwhile
	who      Peer   // what its hello says
	most     int    // bytes that it takes in one message
	timer    func() // stops greetingTime; nil: it does not run
	patience func() // stops Patience; nil: it does not run
	deadline func() // stops overtime; nil: it does not run
	forget   func() // stops Patience since the last connection; nil: it does not run
	pausing  bool   // no dial before paused comes
	cause    error  // why this side ends the generation

	first    [][]byte        // frames that go before all that waits
	out      packet          // taken, and to be posted next; its buf is nil: none
	send     *reconnect.Send // of what is posted next; nil: not made yet
	sent     uint64          // user packets with a lower number were posted
	posted   tally
	in       receiving
	inbox    *inbox.Inbox
	report   *reporter
	spawning int // of the peer's Spawns
}

// The messages to a link.
type (
	admitted struct {
		number uint64
		err    error
	}
	late      struct{ number uint64 } // greetingTime is over
	overdue   struct{ number uint64 } // farewellTime is over
	impatient struct{}                // Patience is over
	forgotten struct{}                // Patience is over since the last connection
	paused    struct{}                // the pause after a failed dial is over
	stuck     struct{}                // system messages find no room
	leave     struct{ timeout time.Duration }
	overtime  struct{}            // the time for leave is over
	fall      struct{ err error } // the runtime is gone
)

var stuckMsg any = &stuck{}

// IgnoreDeadLetterLogging: the link may have ended before the user's code has returned.
func (*admitted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: as admitted.
func (*spawned) IgnoreDeadLetterLogging() {}

// newLinkLocked makes a peer and its link. from: it is a stranger, from there. n.mu is locked.
func (n *Node) newLinkLocked(id uint64, name string, from netip.Addr) *peer {
	p := newPeer(n, id, name)
	p.from = from
	l := &link{n: n, p: p}
	n.links++
	props := actor.PropsFromProducer(func() actor.Actor { return l }, n.rt.OnLoop(), resuming)
	pid, err := n.sys.Root.SpawnNamed(props, n.own+"/link-"+strconv.FormatUint(n.links, 10))
	if err != nil { // the name is the node's own
		panic(fmt.Sprintf("remoting: BUG: %v", err))
	}
	p.link, p.number = pid, n.links
	l.report = n.newReporterLocked(p, pid)
	p.futures.prefix = slotsOf(n.links)
	n.peers[id], n.linked[n.links] = p, p
	if p.stranger() {
		n.strangers.Take(from)
	}
	l.count(true)
	return p
}

// count says whether the peer counts as one that is not connected. Strangers never do: they have
// places of their own.
func (l *link) count(counts bool) {
	if counts != l.counted && !l.p.stranger() {
		l.counted = counts
		if counts {
			l.n.unconnected.Add(1)
		} else {
			l.n.unconnected.Add(-1)
		}
	}
}

// resuming is the supervision of a link. What panics in it is the user's code, on behalf of one
// message.
var resuming = actor.WithGuardian(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective }))

// connectLocked makes the reconnecting actor of a peer, which dials addr. p.mu is locked.
func (n *Node) connectLocked(p *peer, addr string) {
	cfg := reconnect.Config{
		Dial: n.cfg.Dial, ID: n.cfg.ID, Resolve: n.cfg.Resolve, FailFast: true, Backoff: n.cfg.Backoff,
		Permanent: func(rdma.Failure) bool { return false }, Peers: n.table, Peer: p.id,
	}
	cfg.Dial.Addr = addr
	p.connections++
	pid, err := n.sys.Root.SpawnNamed(reconnect.Props(n.rt, p.link, cfg), p.link.Id+"/connection-"+strconv.Itoa(p.connections))
	if err != nil { // the name is the node's own
		panic(fmt.Sprintf("remoting: BUG: %v", err))
	}
	p.conn = pid
}

// Receive implements actor.Actor.
func (l *link) Receive(ctx actor.Context) {
	defer l.broken(ctx)
	l.in.busy = true
	l.react(ctx)
	l.in.busy = false
}

func (l *link) react(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Received:
		l.received(ctx, m)
	case *flush:
		l.flush(ctx)
	case *rdma.Writable:
		if l.up != nil {
			l.flush(ctx)
		}
	case *reconnect.Up:
		l.begin(ctx, m)
	case *reconnect.Down:
		l.down(ctx, m)
	case *reconnect.Closed:
		l.closed(ctx, m)
	case *reconnect.Refused: // nothing is sent to it
	case *admitted:
		l.admitted(ctx, m)
	case *readmit:
		l.readmit(ctx)
	case *readmitted:
		l.readmitted(ctx, m)
	case *late:
		if l.greets(m.number) {
			l.breakOff(ctx, frame.GoodbyeNoHello, errLate)
		}
	case *impatient:
		l.impatient(ctx)
	case *overdue:
		if l.greets(m.number) {
			ctx.Send(l.conn, &reconnect.Break{Generation: l.up.Generation, Err: l.cause})
		}
	case *paused:
		l.pausing = false
		l.consider(ctx)
	case *forgotten:
		l.remembers = false
		l.consider(ctx)
	case *stuck:
		l.stuck(ctx)
	case *spawned:
		l.spawned(m)
	case *leave:
		l.leave(ctx, m.timeout)
	case *overtime:
		l.overtime(ctx)
	case *fall:
		l.fall(ctx, m.err)
	case *actor.Started:
		l.start(ctx)
	case *actor.Stopping:
		l.stopping(ctx)
	default:
		l.inbox.Receive(ctx)
		l.readOn(ctx)
	}
}

// stuck ends a connection whose peer does not take system messages.
func (l *link) stuck(ctx actor.Context) {
	l.p.mu.Lock()
	still := l.p.stuck // it may have been an earlier connection
	l.p.mu.Unlock()
	if still {
		l.end(ctx, fmt.Errorf("the peer does not take system messages: %w", ErrQueueFull))
	}
}

func (l *link) start(ctx actor.Context) {
	cfg := &l.n.cfg
	l.self, l.local = ctx.Self(), rdma.LocalOf(ctx)
	l.inbox = inbox.New(ctx, inbox.Config{
		System: l.n.sys, Runtime: l.n.rt, Bytes: max(cfg.MaxMessage, inboxBytes), Patience: cfg.Patience,
		Refuse: func(target *actor.PID, msg any, bytes int, sender *actor.PID, why error) {
			l.notDelivered(ctx, target, msg, bytes, sender, why)
		},
	})
}

// broken notices that the user's code, which has run on behalf of the peer, has not returned. What
// had not been read of its frame is lost, and so the connection has to end.
func (l *link) broken(ctx actor.Context) {
	if !l.in.busy {
		return
	}
	l.in.busy = false
	err := errors.New("code that was called for a message has not returned")
	if v := recover(); v != nil {
		err = fmt.Errorf("code that was called for a message has panicked: %v", v)
		defer panic(v)
	}
	if l.up != nil {
		l.end(ctx, err)
	}
}

// consider decides what to do without a connection: to dial, to wait, or to end the link.
func (l *link) consider(ctx actor.Context) {
	if l.up != nil || l.ended {
		return
	}
	p := l.p
	p.mu.Lock()
	waits := p.waitsLocked()
	p.awake = waits
	if waits && p.conn == nil && !l.pausing {
		n := l.n
		l.closing = false
		n.connectLocked(p, p.name)
	}
	if !waits && p.conn == nil && !l.pausing && p.state == linkBroken {
		p.state = linkDown // the next request dials again
	}
	conn := p.conn
	p.mu.Unlock()
	switch {
	case l.bye && (conn == nil || !waits):
		l.fall(ctx, ErrShutdown)
	case conn != nil && !l.closing && !waits:
		l.closing = true
		ctx.Send(conn, &rdma.DestroyID{})
	case waits:
		l.await(ctx)
	case conn == nil && !l.pausing && !l.remember(ctx):
		l.finish(ctx)
	}
}

// remember keeps the peer for a while after its last connection, with what it may answer.
func (l *link) remember(ctx actor.Context) bool {
	if l.wasOpen {
		l.wasOpen, l.remembers = false, true
		l.forget = rdma.After(ctx, l.n.cfg.Patience, &forgotten{})
	}
	return l.remembers
}

// waitsLocked reports whether something waits for the peer.
func (p *peer) waitsLocked() bool { return !p.user.empty() || !p.system.empty() }

// await has what waits become dead letters when Patience is over.
func (l *link) await(ctx actor.Context) {
	if l.patience == nil {
		l.patience = rdma.After(ctx, l.n.cfg.Patience, &impatient{})
	}
}

func (l *link) impatient(ctx actor.Context) {
	l.patience = nil
	if l.greeting == open || l.ended {
		return
	}
	l.unreachable(ErrUnreachable)
	l.consider(ctx)
}

// closed takes note that the reconnecting actor has ended.
func (l *link) closed(ctx actor.Context, m *reconnect.Closed) {
	if l.greeting == open { // Down has not come
		l.lost(ctx, m.Err)
	}
	l.p.mu.Lock()
	if l.p.conn.Equal(ctx.Sender()) {
		l.p.conn = nil
	}
	l.p.mu.Unlock()
	l.closing = false
	if errors.Is(m.Err, rdma.ErrShutdown) {
		l.fall(ctx, m.Err)
		return
	}
	l.consider(ctx)
}

// finish ends the link if still nothing waits.
func (l *link) finish(ctx actor.Context) {
	if !l.endIf(func() bool { return !l.p.waitsLocked() }) {
		l.consider(ctx)
		return
	}
	l.quit(ctx)
}

// fall ends the link at once: there is no connection, and none will come.
func (l *link) fall(ctx actor.Context, err error) {
	if !l.ended {
		l.collapse(ctx, err)
		l.quit(ctx)
	}
}

// collapse ends the connection, and answers everything that waits.
func (l *link) collapse(ctx actor.Context, err error) {
	if l.greeting == open {
		l.settle()
		l.lost(ctx, err)
	}
	l.p.mu.Lock()
	conn := l.p.conn
	l.p.mu.Unlock()
	if conn != nil {
		ctx.Send(conn, &rdma.DestroyID{})
	}
	l.endIf(func() bool { return true })
	l.unreachable(err)
}

// quit stops the link's actor, when the rest has ended. What still waits for slow targets of this
// node is refused, while the reporter can make it dead letters.
func (l *link) quit(ctx actor.Context) {
	l.close()
	ctx.Stop(l.self)
}

// endIf ends the link if that is allowed: nothing can be put any more.
func (l *link) endIf(allowed func() bool) bool {
	n, p := l.n, l.p
	n.mu.Lock()
	defer n.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !allowed() {
		return false
	}
	l.ended, p.ended = true, true
	p.over.Store(true)
	p.grants = grants{} // a PID may keep the peer in memory
	p.releaseLocked()
	delete(n.peers, p.id)
	delete(n.linked, p.number)
	n.ended[p] = struct{}{}
	if l.report.over {
		n.forgetLocked(p, p.countsLocked())
	}
	if p.stranger() {
		n.strangers.Free(p.from)
	}
	l.count(false)
	n.emptiedLocked()
	l.stopTimers()
	return true
}

func (l *link) stopTimers() {
	for _, stop := range []*func(){&l.timer, &l.patience, &l.forget, &l.deadline} {
		if *stop != nil {
			(*stop)()
			*stop = nil
		}
	}
}

// stopping is called when somebody has stopped the link from outside.
func (l *link) stopping(ctx actor.Context) {
	if l.ended {
		return
	}
	err := rdma.ErrStopped
	if l.n.down.Load() {
		err = ErrShutdown
	}
	l.collapse(ctx, err)
	l.close()
}

// close gives up what an ended link has. Its peer may stay in memory for long: PIDs keep it.
func (l *link) close() {
	l.inbox.Close()
	l.report.end()
	l.p.mu.Lock()
	l.p.futures = futures{}
	l.p.mu.Unlock()
}
