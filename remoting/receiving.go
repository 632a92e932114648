package remoting

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// receiving is the half of a link that handles the peer's messages. It belongs to the loop.
type receiving struct {
	*line
	inbox   *inbox.Inbox
	names   frame.Names
	rec     frame.Record
	targets map[string]*target
	last    *target // of the message before
	senders map[frame.PID]*actor.PID
	// of the names of targets, and of senders
	targetBytes, senderBytes int
	unread                   ring.Ring[unread] // oldest first
	turn                     turn
	wrong                    fairshare.Rates[struct{}]

	spawning int // of the peer's Spawns
}

// unread is a frame that waits, retained, until the inbox has room, or for another turn. Its
// messages are not decoded before: that would need more memory than the frame has.
type unread struct {
	m    *rdma.Received
	d    frame.Reader // the rest of the frame
	next bool         // the record that was read last is to be judged first
}

// turn counts the work of a turn of the loop.
type turn struct {
	at    time.Time
	spent int
	over  bool // another turn was asked for
}

const (
	// turnMost is how many messages are read in a turn of the loop. Their frames may be much
	// larger, and a record may need a single byte. The rest is read in another turn, after other
	// connections. The messages of a few frames from a node are read in one.
	turnMost = 1 << 16
	// otherCost is the cost of a record that is no message, or is a refused one.
	otherCost = 64
)

// readOn makes a link continue reading, in another turn. All links share one.
type readOn struct{}

var readOnMsg any = &readOn{}

// mayRead reports whether more may be read in this turn. If not, it asks for another one.
func (in *receiving) mayRead(ctx actor.Context) bool {
	t := &in.turn
	if now := in.local.Now(); !t.over && !now.Equal(t.at) {
		t.at, t.spent = now, 0
	}
	if t.spent < turnMost {
		return true
	}
	if !t.over {
		t.over = true
		rdma.After(ctx, 0, readOnMsg) // a message to itself could be received in this turn
	}
	return false
}

// nextTurn begins another turn.
func (in *receiving) nextTurn() { in.turn = turn{at: in.local.Now()} }

// countRecord counts a record that was read.
func (in *receiving) countRecord(r *frame.Record) {
	if in.turn.spent++; r.Kind != frame.KindUser {
		in.turn.spent += otherCost - 1
	}
}

// releaseUnread releases the unread frames. Their connection has ended: before that, their sender
// would take them for received.
func (in *receiving) releaseUnread() {
	for in.unread.Len() > 0 {
		in.unread.Pop().m.Release()
	}
}

// remembered is how many targets, and how many senders, a link remembers, and rememberedBytes how
// many bytes their names may have.
const (
	remembered      = 4096
	rememberedBytes = 256 << 10
)

// clearNames clears the names of a connection, and the results about them.
func (in *receiving) clearNames() { in.targets, in.last, in.senders = nil, nil, nil }

// countName counts the bytes of a name. True: clear the remembered names first.
func countName(sum *int, name, count int) (forget bool) {
	forget = count == 0 || count >= remembered || *sum+name > rememberedBytes
	if forget {
		*sum = 0
	}
	*sum += name
	return forget
}

// target is an actor of this node that the peer has named.
type target struct {
	pid     *actor.PID
	exposed tables.Accesses // results of Expose and Allow ...
	asked   tables.Accesses // ... for these operations
	version uint64          // of the rules that were asked
}

// targetOf returns the actor of that name.
func (in *receiving) targetOf(id string) *target {
	version := in.host.rules.Load().version
	t := in.last // most often a message is for the same actor as the one before
	if t == nil || t.pid.Id != id {
		t = in.targets[id]
	}
	if t != nil {
		if t.version != version {
			t.version, t.asked, t.exposed = version, 0, 0
		}
		in.last = t
		return t
	}
	if countName(&in.targetBytes, len(id), len(in.targets)) {
		in.targets = make(map[string]*target)
	}
	t = &target{pid: actor.NewPID(in.host.name, id), version: version}
	in.targets[id], in.last = t, t
	return t
}

// senderPID returns a sender as a PID. Those of actors are kept, those of futures come once.
func (in *receiving) senderPID(s *frame.PID) *actor.PID {
	if s.ID == "" {
		return nil
	}
	future := tables.IsFuture(s.ID)
	switch {
	case !future:
		if pid := in.senders[*s]; pid != nil {
			return pid
		}
	case s.Address != "" && in.host.isLocal(s.Address): // of this node, and comes back
		if r, ok := in.findFuture(s.ID, s.Request, (*tables.Futures).Find); ok {
			return r.Future
		}
	}
	pid := &actor.PID{Address: s.Address, Id: s.ID, RequestId: s.Request}
	if pid.Address == "" {
		pid.Address = in.who.Name
	}
	if !future {
		if countName(&in.senderBytes, len(s.ID)+len(s.Address), len(in.senders)) {
			in.senders = make(map[frame.PID]*actor.PID)
		}
		in.senders[*s] = pid
	}
	return pid
}

// findFuture finds or removes a future of this node, if the peer has its token.
func (in *receiving) findFuture(id string, token uint32, take func(f *tables.Futures, id string, token uint32) (tables.Request, bool)) (r tables.Request, ok bool) {
	p := in.p
	if !p.futures.Has(id) {
		if p = in.roster.findAsker(id); p == nil {
			return r, false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return take(&p.futures, id, token)
}
