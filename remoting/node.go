package remoting

import (
	"context"
	"fmt"
	"sync"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/relisten"
)

// Node is an actor system whose actors can be reached from other machines. Its methods are for any
// goroutine.
type Node struct {
	*roster
	addresses *addresses
	listener  *relisten.Listener

	shutdown struct {
		once sync.Once
		done chan struct{}
		err  error
	}
}

// Start makes rt's ActorSystem a node of that name: its PIDs have the name as their address from
// now on, and a PID of any other address stands for an actor of the node with that name. So it is
// called before any actor is spawned there, only once, and not beside Proto.Actor's remote
// (ErrStarted). Any goroutine but a loop's.
func Start(rt *rdma.Runtime, cfg Config) (*Node, error) {
	if err := eventloop.MayWait(); err != nil {
		return nil, fmt.Errorf("remoting: Start: %w", err)
	}
	sys := rt.System()
	if len(sys.ProcessRegistry.RemoteHandlers) > 0 {
		return nil, fmt.Errorf("remoting: %w", ErrStarted)
	}
	cfg, err := cfg.withDefaults(sys, time.Now())
	if err != nil {
		return nil, fmt.Errorf("remoting: %w", err)
	}
	h := &host{sys: sys, rt: rt, cfg: cfg, own: "remoting" + sys.ProcessRegistry.NextID()}
	h.rules.Store(&rules{expose: cfg.Expose})
	if what := missingPart(sys); what != "" {
		rt.Logger().Warn("remoting: this version of Proto.Actor is not known, so everything is delivered off the loops, which is slower", "why", what)
	}
	n := &Node{roster: newRoster(h)}
	n.addresses = &addresses{roster: n.roster, processes: make(map[string]weak.Pointer[process])}
	n.shutdown.done = make(chan struct{})
	id := cfg.ID
	id.Route, id.Place = n.routeRequest, n.placeRequest
	// without a bound: a node that cannot be reached can still connect to others
	n.listener, err = relisten.Listen(context.Background(), rt, relisten.Config{
		Name: h.own + "/listener", Addr: cfg.Listen, ID: id, Backoff: cfg.Backoff, Listening: n.listenerStarted, Ended: n.listenerLost,
	})
	if err != nil {
		return nil, fmt.Errorf("remoting: listen at %s: %w", cfg.Listen, err)
	}
	return n, nil
}

// listenerStarted sets the node's name when the listener listens, before the first request.
func (n *Node) listenerStarted(at rdma.Addr) {
	if n.name = n.cfg.Name; n.name == "" {
		n.name = at.String()
	}
	n.table = reconnect.NewPeers(reconnect.PeersConfig{
		Node: nodeID(n.name), Incarnation: n.cfg.Incarnation, Unknown: n.addStranger, Strangers: n.halfPeers(), Proves: n.provesFunc(),
	})
	n.sys.ProcessRegistry.Address = n.name
	n.sys.ProcessRegistry.RegisterAddressResolver(n.addresses.resolvePID)
}

// listenerLost closes the node, because the runtime has ended: nothing can be sent.
func (n *Node) listenerLost(err error) {
	n.down.Store(true)
	n.closeLinks(&fall{err})
}

// placeRequest implements rdma.IDConfig.Place.
func (n *Node) placeRequest(hint uint32) *actor.PID {
	if n.table == nil {
		return nil
	}
	return n.table.Place(hint)
}

// routeRequest implements rdma.IDConfig.Route.
func (n *Node) routeRequest(r *rdma.ConnectRequest) (owner *actor.PID, reject *rdma.Reject) {
	if n.table == nil {
		return nil, &rdma.Reject{}
	}
	return n.table.Route(r)
}

// Name is the address in the node's PIDs.
func (n *Node) Name() string { return n.name }

// Expose adds rules to Config.Expose. Any goroutine.
func (n *Node) Expose(more Expose) { n.setRules(func(e Expose) Expose { return e.with(more) }) }

// Conceal takes rules away that Config.Expose or Expose has added, as they stand there. Actors that
// have sent a peer something can still be answered by it. Any goroutine.
func (n *Node) Conceal(less Expose) { n.setRules(func(e Expose) Expose { return e.without(less) }) }

// Exposes reports whether every peer has that access to an actor or a kind of that name: a rule
// contains it, and there is no Config.Allow, which decides for each peer. Any goroutine.
func (n *Node) Exposes(a Access, name string) bool {
	return n.cfg.Allow == nil && !isForbidden(name) && n.rules.Load().allowsAccess(a, name)
}

func (n *Node) setRules(change func(Expose) Expose) {
	for {
		was := n.rules.Load()
		if n.rules.CompareAndSwap(was, &rules{change(was.expose), was.version + 1}) {
			return
		}
	}
}

// Readmit asks Config.Admit again about every connected peer, because the answer may have changed.
// Refused peers lose their connection. It does not wait for that. Any goroutine.
func (n *Node) Readmit() {
	if n.cfg.Admit == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tellLocked(&readmit{})
}
