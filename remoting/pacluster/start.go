package pacluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/asynkron/protoactor-go/remote"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/remoting"
)

// ErrBlocked is why a member may not connect: it has been a member of this cluster, and it is none
// any more. A process that is started anew is another member.
var ErrBlocked = errors.New("pacluster: it is no member any more")

// ErrStarted: the actor system has a remote already.
var ErrStarted = errors.New("pacluster: the actor system has a remote already, which would get the messages")

// Config configures a member.
type Config struct {
	// Cluster is the cluster's name, the same for all members.
	Cluster string
	// Provider says who the members are. [Automanaged] needs no server.
	Provider cluster.ClusterProvider
	// Lookup says where grains are. nil: disthash, on all members. Another one may need more of
	// Remoting.Expose.
	Lookup cluster.IdentityLookup
	// Kinds are the kinds of grains that this member has.
	Kinds []*cluster.Kind
	// Spawn is what remote.SpawnNamed of other members may spawn here.
	Spawn map[string]*actor.Props
	// Options are Proto.Actor's options of a cluster.
	Options []cluster.ConfigOption
	// Client has this node use the cluster without being a member.
	Client bool
	// Remoting is the node. Its Name is "host:port", because the cluster's providers take it apart.
	// Its Expose is added to what members need of one another. Its Admit is asked about who is not
	// blocked.
	Remoting remoting.Config
}

// Member is a node that is a member of a cluster.
type Member struct {
	Node    *remoting.Node
	Cluster *cluster.Cluster

	sys      *actor.ActorSystem
	client   bool
	shell    *shell
	observer *eventstream.Subscription
	blocked  atomic.Pointer[remote.BlockList] // nil: nobody is
	size     atomic.Int64                     // members
	departed departed
	// for place; nil: the lookup is not disthash
	topologies chan *cluster.ClusterTopology
	expel      sync.Once
	expelled   chan struct{}

	shutdown  sync.Once
	leaving   chan struct{} // closed when Shutdown was called
	completed chan struct{} // closed when err is the outcome
	err       error
}

// Start has sys join a cluster over rt, and returns when it is a member. That takes a second, which
// Proto.Actor waits, or longer if the provider needs that. It must be called before anything is
// spawned in sys, and instead of StartMember.
func Start(sys *actor.ActorSystem, rt *rdma.Runtime, cfg Config) (*Member, error) {
	switch {
	case cfg.Provider == nil:
		return nil, errors.New("pacluster: a Provider is needed")
	case len(sys.ProcessRegistry.RemoteHandlers) > 0:
		return nil, ErrStarted
	}
	m := &Member{
		sys: sys, client: cfg.Client, shell: &shell{},
		expelled: make(chan struct{}), leaving: make(chan struct{}), completed: make(chan struct{}),
	}
	node, err := remoting.Start(sys, rt, m.remoting(cfg))
	if err != nil {
		return nil, err
	}
	m.Node = node
	if err := m.join(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("pacluster: %w", err), m.Shutdown(context.Background()))
	}
	return m, nil
}

// remoting is the node's configuration.
func (m *Member) remoting(cfg Config) remoting.Config {
	c := cfg.Remoting
	c.Expose = both(exposed(len(cfg.Spawn) > 0), c.Expose)
	if c.Codec == nil {
		c.Codec = codec.New()
	}
	c.Codec = serialized{c.Codec, cfg.Spawn}
	c.Member = m.sys.ID
	admit := c.Admit
	c.Admit = func(p remoting.Peer) error {
		if m.isBlocked(cfg.Cluster, p.Member) {
			return refusal{&blocked{int(m.size.Load())}}
		}
		if admit == nil {
			return nil
		}
		if err := admit(p); err != nil {
			return refusal{err}
		}
		return nil
	}
	return c
}

// isBlocked reports whether a node is no member any more. Some providers, such as etcd's, put the
// cluster's name before the actor system's id.
func (m *Member) isBlocked(name, id string) bool {
	list := m.blocked.Load()
	return list != nil && (list.IsBlocked(id) || list.IsBlocked(name+"@"+id))
}

// join starts Proto.Actor's cluster, whose functions panic.
func (m *Member) join(cfg Config) (err error) {
	if cfg.Lookup == nil {
		cfg.Lookup = disthash.New()
		m.topologies = make(chan *cluster.ClusterTopology)
		go m.place()
	}
	options := append([]cluster.ConfigOption{cluster.WithKinds(cfg.Kinds...)}, cfg.Options...)
	config := cluster.Configure(cfg.Cluster, cfg.Provider, cfg.Lookup, m.shell.config(m.Node.Name(), cfg.Spawn), options...)
	stock := config.ClusterContextProducer
	config.ClusterContextProducer = func(c *cluster.Cluster) cluster.Context { return calls{stock(c)} }
	defer func() {
		if v := recover(); v != nil {
			if e, ok := v.(error); ok {
				err = fmt.Errorf("the cluster does not start: %w", e)
			} else {
				err = fmt.Errorf("the cluster does not start: %v", v)
			}
		}
	}()
	m.Cluster = cluster.New(m.sys, config)
	m.observer = m.sys.EventStream.Subscribe(m.observe)
	if cfg.Client {
		m.Cluster.StartClient()
	} else {
		m.Cluster.StartMember()
	}
	go m.probe()
	return nil
}
