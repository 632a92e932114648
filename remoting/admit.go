package remoting

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// admitsAtOnce is how many calls of Config.Admit there may be for one peer: those for earlier
// connections may block forever.
const admitsAtOnce = 4

// startAdmit asks Config.Admit, on a goroutine, because it is the user's and may block.
func (l *link) startAdmit(ctx actor.Context) {
	l.greeting, l.queued = admitting, false
	m := &admitted{number: l.number}
	if l.host.cfg.Admit == nil {
		l.handleAdmitted(ctx, m)
		return
	}
	if l.asking == admitsAtOnce {
		l.queued = true
		return
	}
	l.asking++
	l.askAdmit(m)
}

// handleAdmitted takes the answer of startAdmit or startReadmit, perhaps for an earlier connection.
func (l *link) handleAdmitted(ctx actor.Context, m *admitted) {
	l.asking--
	current := l.number == m.number && (l.greeting == admitting || l.greeting == open)
	switch {
	case l.greeting == admitting && l.queued: // another connection, which has waited for this
		l.startAdmit(ctx)
	case current && m.err != nil:
		l.breakOff(ctx, frame.GoodbyeBlocked, fmt.Errorf("%w: %w", ErrBlocked, m.err))
	case l.greeting == open:
		if l.askAgain {
			l.startReadmit()
		}
	case !current:
	case l.up.Accepted:
		l.greeting = agreed
		l.sayHello(ctx)
	default:
		l.startSending(ctx)
		l.sendRecord(ctx, nil)
	}
}

// startReadmit asks Admit about the peer of an open connection, one time after the other.
func (l *link) startReadmit() {
	if l.asking > 0 || l.greeting == agreed {
		l.askAgain = true
	}
	if l.asking > 0 || l.greeting != open {
		return
	}
	l.asking++
	l.askAgain = false
	l.askAdmit(&admitted{number: l.number})
}

// askAdmit calls Config.Admit on a goroutine, and sends m with its answer to the link. Calls
// that never return are not as many as connections that were ever made: those of links that have
// ended count among those of all.
func (l *link) askAdmit(m *admitted) {
	h, who, self, root, ask := l.host, l.who, l.self, l.host.sys.Root, l.host.cfg.Admit
	if h.asking.Add(1) > int64(admitsAtOnce*h.cfg.Peers) {
		h.asking.Add(-1)
		m.err = errors.New("not answered: too many calls of Admit have not returned")
		root.Send(self, m)
		return
	}
	h.rt.Scheduler().Go(func() {
		m.err = errors.New("not answered: Admit has not returned")
		defer func() {
			h.asking.Add(-1)
			if v := recover(); v != nil {
				m.err = fmt.Errorf("not answered: Admit has panicked: %v", v)
			}
			root.Send(self, m)
		}()
		m.err = ask(who)
	})
}

// startSending begins to send.
func (l *link) startSending(ctx actor.Context) {
	p := l.p
	l.greeting = open
	l.peerReturned()
	l.in.inbox.MeterAgain()
	l.in.clearNames() // Allow may think otherwise of another node of that name
	l.stopTimers()
	p.mu.Lock()
	unnamed := p.name == ""
	p.name, p.who, p.most, p.state, p.failure = l.who.Name, l.who, l.most, linkOpen, nil
	p.grants.Connected(l.who.Incarnation, l.who.At.Source(), l.local.Now(), p.sendersLocked)
	p.mu.Unlock()
	l.countUnconnected(false)
	l.roster.forgetUnproved(p.id)
	if unnamed {
		ctx.Send(l.conn, &reconnect.Address{Addr: l.who.Name})
	}
	l.report.publishEvent(ctx, &Connected{Peer: l.who})
	if l.askAgain {
		l.startReadmit()
	}
}
