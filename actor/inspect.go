package actor

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
)

// IDInfo is what Inspect reports about an identifier.
type IDInfo struct {
	PID         *actor.PID
	Owner       *actor.PID // nil: nobody
	ID          Handle     // 0: not made yet, or never
	Loop        string
	State       State
	InState     time.Duration // since it entered State
	Age         time.Duration
	Local, Peer Addr
	Device      string        // "" without one
	Mailbox     int           // messages waiting for the identifier's actor
	Listener    *ListenerInfo // nil: it has never listened

	// AsOf is when the loop has said what follows: now, or when it was last asked before an actor
	// has blocked it. Zero: it has not said anything yet. What is above is of now in any case.
	AsOf time.Time
	// how messages travel: "messages", "raw", "raw (foreign peer)"; "" before there is a
	// connection
	Wire      string
	Waiting   string // the command whose answer is still to come; "" for none
	Credits   Credits
	Traffic   Traffic
	Memory    int               // bytes of AllocMemory
	Delivered uint64            // sends that the peer has consumed
	History   []cmid.Transition // the last transitions, oldest first; not to be changed
}

// Traffic is what a connection has moved since it was made. What the peer reads and writes by
// itself is not counted: the device does that alone.
type Traffic = datapath.Traffic

// Inspect reports every identifier, ordered by ID. It asks each loop and waits for the answers, at
// most for 100 ms. Of a loop that is blocked longer it reports what is known without asking
// (IDInfo.AsOf); Loops says what blocks it. Any goroutine. On a loop's own goroutine only that
// loop's identifiers are reported, because a loop must not wait for another. After Shutdown there
// are none.
func (rt *Runtime) Inspect() []IDInfo {
	if rt.over.Load() {
		return nil
	}
	if l := rt.here(); l != nil {
		return ordered(slices.Clone(l.inspect())) // what it has answered stays as it is: known
	}
	asked := make([]<-chan struct{}, len(rt.loops))
	for i, l := range rt.loops {
		asked[i] = l.askIDs.begin(l, l.inspect)
	}
	var all []IDInfo
	for i, answered := range rt.await(asked) {
		switch l := rt.loops[i]; {
		case answered:
			all = append(all, l.askIDs.lastAnswer()...)
		case asked[i] != nil:
			all = append(all, l.known.all(l.clock())...)
		}
	}
	return ordered(all)
}

func ordered(infos []IDInfo) []IDInfo {
	slices.SortFunc(infos, func(a, b IDInfo) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.PID.Id, b.PID.Id))
	})
	return infos
}

// inspect is the loop's answer.
func (l *loop) inspect() []IDInfo {
	infos, ids := make([]IDInfo, 0, len(l.ids)), make([]*ident, 0, len(l.ids))
	for it := range l.ids {
		infos, ids = append(infos, it.info()), append(ids, it)
	}
	l.known.keep(ids, infos)
	return infos
}

func (it *ident) info() IDInfo {
	i := it.identity()
	i.Mailbox, i.Memory, i.AsOf = it.box.UserMessageCount(), it.memory, it.l.el.Now()
	if it.listened != nil {
		i.Listener = it.listened.info()
	}
	if it.id != nil {
		i.History = it.id.History()
		if i.Listener != nil {
			i.Listener.Strangers = it.id.Strangers()
		}
	}
	for _, a := range it.asked {
		if a.then == nil {
			i.Waiting = opName(a.cmd)
			break
		}
	}
	if c := it.conn; c != nil {
		i.Wire, i.Credits, i.Traffic, i.Delivered = c.Kind().String(), c.Counts(), c.Traffic(), c.Delivered()
	}
	return i
}

// Held counts the messages that owners have received and not given back: they are retained and not
// released, or on their way to an actor that runs on goroutines. Their connections may have ended.
// Held asks the loops as Inspect does. Any goroutine.
func (rt *Runtime) Held() (n int) {
	counts, _ := askLoops(rt, (*loop).Held)
	for _, c := range counts {
		n += c
	}
	return n
}
