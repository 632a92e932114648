package remoting

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Node is an actor system whose actors can be reached from other machines. Its methods are for any
// goroutine.
type Node struct {
	sys   *actor.ActorSystem
	rt    *rdma.Runtime
	cfg   Config
	name  string
	own   string // what the names of its own actors begin with
	rules atomic.Pointer[rules]
	table *reconnect.Peers
	owner *actor.PID  // the listener's
	began func(error) // reports how listening has begun; the first call counts

	mu        sync.Mutex
	processes map[string]weak.Pointer[process] // by address
	peers     map[uint64]*peer                 // by the id of the node
	linked    map[uint64]*peer                 // by the number of the link
	ended     map[*peer]struct{}               // not among these any more; their reporters are
	forgotten Counts                           // of those whose reporters have ended, too
	strangers fairshare.Places                 // of peers, those that are
	named     named
	unproved  unproved
	links     uint64 // made so far
	reporters int    // there are
	closing   bool
	alone     chan struct{} // closed when closing and there are no peers
	idle      chan struct{} // closed when there are no reporters either
	gone      chan struct{} // closed when the listener's owner has stopped

	unconnected atomic.Int64 // peers that are not connected, and no strangers
	asking      atomic.Int64 // calls of Config.Admit that have not returned
	spawning    atomic.Int64 // Spawns of peers that have not returned
	down        atomic.Bool  // nothing is accepted any more
	piping      atomic.Int64 // bytes of answers that are being piped
	unsent      atomic.Bool  // something was not sent before Shutdown gave up

	shutdown struct {
		once sync.Once
		done chan struct{}
		err  error
	}
}

// Start makes sys a node of that name: its PIDs have the name as their address from now on, and a
// PID of any other address stands for an actor of the node with that name. So it is called before
// anything is spawned in sys, and only once, and not beside Proto.Actor's remote (ErrStarted). rt
// is a runtime in sys. Any goroutine but a loop's.
func Start(sys *actor.ActorSystem, rt *rdma.Runtime, cfg Config) (*Node, error) {
	if err := eventloop.MayWait(); err != nil {
		return nil, fmt.Errorf("remoting: Start: %w", err)
	}
	if len(sys.ProcessRegistry.RemoteHandlers) > 0 {
		return nil, fmt.Errorf("remoting: %w", ErrStarted)
	}
	cfg, err := cfg.withDefaults(sys, time.Now())
	if err != nil {
		return nil, fmt.Errorf("remoting: %w", err)
	}
	n := &Node{
		sys: sys, rt: rt, cfg: cfg, own: "remoting" + sys.ProcessRegistry.NextID(),
		processes: make(map[string]weak.Pointer[process]), peers: make(map[uint64]*peer),
		linked: make(map[uint64]*peer), ended: make(map[*peer]struct{}),
		alone: make(chan struct{}), idle: make(chan struct{}), gone: make(chan struct{}),
	}
	n.shutdown.done = make(chan struct{})
	n.rules.Store(&rules{expose: cfg.Expose})
	if err := n.listen(); err != nil {
		return nil, fmt.Errorf("remoting: listen at %s: %w", cfg.Listen, err)
	}
	return n, nil
}

// Name is the address in the node's PIDs.
func (n *Node) Name() string { return n.name }

// begin is called on the listener's loop when it listens, before the first request: now the node
// has a name.
func (n *Node) begin(at rdma.Addr) {
	if n.name = n.cfg.Name; n.name == "" {
		n.name = at.String()
	}
	n.table = reconnect.NewPeers(reconnect.PeersConfig{
		Node: nodeID(n.name), Incarnation: n.cfg.Incarnation, Unknown: n.stranger, Strangers: n.half(), Proves: n.proves(),
	})
	n.sys.ProcessRegistry.Address = n.name
	n.sys.ProcessRegistry.RegisterAddressResolver(n.resolve)
}

// place is rdma.IDConfig.Place.
func (n *Node) place(hint uint32) *actor.PID {
	if n.table == nil {
		return nil
	}
	return n.table.Place(hint)
}

// route is rdma.IDConfig.Route.
func (n *Node) route(r *rdma.ConnectRequest) (owner *actor.PID, reject *rdma.Reject) {
	if n.table == nil {
		return nil, &rdma.Reject{}
	}
	return n.table.Route(r)
}
