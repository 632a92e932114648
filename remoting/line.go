package remoting

import (
	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// line is what both halves of a link know. It belongs to the loop.
type line struct {
	host   *host
	roster *roster
	p      *peer
	self   *actor.PID // the link
	local  rdma.Local
	report *reporter

	up       *reconnect.Up // nil: there is no connection
	number   uint64        // of the connection; each reconnecting actor begins its Generations anew
	greeting greeting
	who      Peer // from its hello
	most     int  // bytes that it takes in one message
}

// greeting is how far a connection is.
type greeting uint8

const (
	absent    greeting = iota // there is no connection
	expecting                 // the peer's hello
	admitting                 // Config.Admit is being asked
	agreed                    // our hello was sent in answer; the peer's next frame opens the link
	open
	refusing // this side ends the connection
)

// knownPeer returns the peer as far as it is known.
func (l *line) knownPeer() Peer {
	if l.who.Name != "" {
		return l.who
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return Peer{Name: l.p.name}
}
