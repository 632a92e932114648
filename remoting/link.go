package remoting

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// link is the actor of one peer. It owns the reconnecting actor that keeps the connection, on one
// loop with it.
type link struct {
	line
	in  receiving
	out sending

	closing bool     // its reconnecting actor was asked to end
	bye     bool     // the node is shutting down, after it has sent the waiting messages
	leaving bool     // then, the peer's end of the connection is waited for
	parted  *parting // the peer's goodbye, if it arrives before leave when the node shuts down
	ended   bool
	counted bool // in roster.unconnected

	conn      *actor.PID // the reconnecting actor that was heard of last
	asking    int        // calls of Config.Admit that have not returned
	queued    bool       // it is to be asked when one of these has returned
	askAgain  bool       // Readmit was called during the check
	timer     func()     // stops greetingTime; nil: it does not run
	patience  func()     // stops Patience; nil: it does not run
	deadline  func()     // stops overtime; nil: it does not run
	due       time.Time  // when overtime comes
	accepting bool       // a request of the peer's is being accepted
	pausing   bool       // no dial before paused comes
	cause     error      // why this side ends the generation
	behind    behind     // the messages that the peer has left behind
}

func newLink(r *roster, p *peer) *link {
	l := &link{line: line{host: r.host, roster: r, p: p}}
	l.in.line, l.out.line = &l.line, &l.line
	return l
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
	paused    struct{}                // the pause after a failed dial is over
	leave     struct{ timeout time.Duration }
	overtime  struct{}            // the time for leave is over
	fall      struct{ err error } // the runtime is gone
	readmit   struct{}
)

// IgnoreDeadLetterLogging: the link may have ended before the user's code has returned.
func (*admitted) IgnoreDeadLetterLogging() {}

// countUnconnected sets whether the peer counts as one that is not connected. Strangers never do:
// they have separate places.
func (l *link) countUnconnected(counts bool) {
	if counts != l.counted && !l.p.isStranger() {
		l.counted = counts
		if counts {
			l.roster.unconnected.Add(1)
		} else {
			l.roster.unconnected.Add(-1)
		}
	}
}

// startTimeout starts the timer after which waiting messages become dead letters.
func (l *link) startTimeout(ctx actor.Context) {
	if l.patience == nil {
		l.patience = rdma.After(ctx, l.host.cfg.Patience, &impatient{})
	}
}

func (l *link) stopTimers() {
	for _, stop := range []*func(){&l.timer, &l.patience, &l.deadline} {
		if *stop != nil {
			(*stop)()
			*stop = nil
		}
	}
}
