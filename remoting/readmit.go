package remoting

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Readmit has Config.Admit asked again about every peer that is connected, because the answer may
// be another one by now. Who is refused loses its connection. It does not wait for that. Any
// goroutine.
func (n *Node) Readmit() {
	if n.cfg.Admit == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range slices.SortedFunc(maps.Values(n.peers), func(a, b *peer) int { return int(a.number) - int(b.number) }) {
		n.sys.Root.Send(p.link, &readmit{})
	}
}

type (
	readmit    struct{}
	readmitted struct {
		number uint64
		err    error
	}
)

// readmit asks Admit about the peer of an open connection, one time after the other.
func (l *link) readmit(ctx actor.Context) {
	if l.asking > 0 || l.greeting == agreed {
		l.askAgain = true
	}
	if l.asking > 0 || l.greeting != open {
		return
	}
	l.asking++
	l.askAgain = false
	m := &readmitted{number: l.number}
	l.askAdmit(&m.err, m)
}

func (l *link) readmitted(ctx actor.Context, m *readmitted) {
	l.asking--
	switch {
	case l.greeting == admitting && l.queued: // another connection, which has waited for this
		l.admit(ctx)
	case l.greeting != open || l.number != m.number:
	case m.err != nil:
		l.breakOff(ctx, frame.GoodbyeBlocked, fmt.Errorf("%w: %w", ErrBlocked, m.err))
	case l.askAgain:
		l.readmit(ctx)
	}
}

// askAdmit calls Config.Admit on a goroutine, and sends m with its answer in err to the link. Calls
// that never return are not as many as connections that were ever made: those of links that have
// ended count among those of all.
func (l *link) askAdmit(err *error, m any) {
	n, who, self, root, ask := l.n, l.who, l.self, l.n.sys.Root, l.n.cfg.Admit
	if n.asking.Add(1) > int64(admitsAtOnce*n.cfg.Peers) {
		n.asking.Add(-1)
		*err = errors.New("not answered: too many calls of Admit have not returned")
		root.Send(self, m)
		return
	}
	n.rt.Scheduler().Go(func() {
		*err = errors.New("not answered: Admit has not returned")
		defer func() {
			n.asking.Add(-1)
			if v := recover(); v != nil {
				*err = fmt.Errorf("not answered: Admit has panicked: %v", v)
			}
			root.Send(self, m)
		}()
		*err = ask(who)
	})
}

// whom is the peer as far as it is known.
func (l *link) whom() Peer {
	if l.who.Name != "" {
		return l.who
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return Peer{Name: l.p.name}
}
