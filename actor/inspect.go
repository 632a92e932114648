package actor

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
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
	Device      string // "" without one
	// how messages travel: "messages", "raw", "raw (foreign peer)"; "" before there is a
	// connection
	Wire      string
	Waiting   string // the command whose answer is still to come; "" for none
	Mailbox   int    // messages waiting for the identifier's actor
	Credits   Credits
	Memory    int               // bytes of AllocMemory
	Delivered uint64            // sends that the peer has consumed
	History   []cmid.Transition // the last transitions, oldest first
}

// Inspect reports every identifier, ordered by ID. It asks each loop and waits for its answer. A
// loop that an actor blocks for longer than a second is left out. Any goroutine. On a loop's own
// goroutine only that loop's identifiers are reported, because a loop must not wait for another.
// After Shutdown there are none.
func (rt *Runtime) Inspect() []IDInfo {
	answers, _ := askLoops(rt, (*loop).inspect)
	all := slices.Concat(answers...)
	slices.SortFunc(all, func(a, b IDInfo) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.PID.Id, b.PID.Id))
	})
	return all
}

func (l *loop) inspect() []IDInfo {
	infos := make([]IDInfo, 0, len(l.ids))
	for it := range l.ids {
		infos = append(infos, it.info())
	}
	return infos
}

func (it *ident) info() IDInfo {
	i := IDInfo{PID: it.pid, Owner: it.owner.pid, Loop: it.l.el.Name(), Mailbox: it.box.UserMessageCount(), Memory: it.memory}
	if it.id != nil {
		in := it.id.Info()
		i.ID, i.State, i.InState, i.Age = it.id.Handle(), it.id.State(), it.id.InState(), it.id.Age()
		if it.ending() {
			i.State = states.Destroying // which waits for the goodbye
		}
		i.Local, i.Peer, i.Device, i.History = in.Local, in.Peer, in.Device, it.id.History()
	}
	for _, a := range it.asked {
		if a.then == nil {
			i.Waiting = opName(a.cmd)
			break
		}
	}
	if c := it.conn; c != nil {
		i.Wire, i.Credits, i.Delivered = c.Kind().String(), c.Counts(), c.Delivered()
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
