package pacluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/asynkron/protoactor-go/remote"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/remoting"
)

// ErrBlocked is the reason why a node may not connect: it was a member of this cluster, and no
// longer is. A process that is started anew is another member.
var ErrBlocked = errors.New("pacluster: it is no member any more")

// ErrSuspended is why a member that was removed by others, or may have been, makes no grains and
// finds none. See [Suspended] and [Expelled].
var ErrSuspended = errors.New("pacluster: the member may have been removed by others")

// ErrStarted: the actor system has a remote already.
var ErrStarted = errors.New("pacluster: the actor system has a remote already, which would get the messages")

// Config configures a member.
type Config struct {
	// Cluster is the cluster's name, the same for all members.
	Cluster string
	// Provider finds the members. [Automanaged] needs no server.
	Provider cluster.ClusterProvider
	// Contact asks the provider's server, such as etcd, whether it serves this node: for etcd, a
	// Get that is not serializable. It is called on a goroutine, six times in a TTL. A member
	// without contact that misses others stops its grains, see [Suspended]. nil: contact is not
	// observed, and such a member goes on.
	Contact func(ctx context.Context) error
	// TTL is how long the provider's server keeps a member that it does not hear from, of its
	// lease. It is needed with Contact.
	TTL time.Duration
	// Lookup locates grains. nil: disthash, on all members. Another one may need more of
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
	// Remoting is the node. Its Name is "host:port", because the cluster's providers take it
	// apart. Its Expose is added to what members need of one another. Its Admit is asked about
	// peers that are not blocked.
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
	blocked  atomic.Pointer[remote.BlockList] // nil: none
	governor *governor
	exposing atomic.Pointer[remoting.Node] // nil: it is starting
	// subscriptions of this process to topics
	subscriptions *subscriptions
	// feeds place; nil: the lookup is not disthash
	topologies chan *cluster.ClusterTopology
	present    *actor.PID  // see presenceName
	suspended  atomic.Bool // it may have no grains for now
	expelled   chan struct{}

	started   chan struct{} // closed when Proto.Actor's cluster has started, or has not
	shutdown  sync.Once
	leaving   chan struct{} // closed when Shutdown was called
	completed chan struct{} // closed when err is the outcome
	err       error
}

// Start makes rt's ActorSystem join a cluster, and returns when it is a member. That takes a
// second, which Proto.Actor waits, or longer if the provider needs that: etcd's waits for its
// server. ctx bounds the start, not the member. If ctx ends, a blocked provider goes on in the
// background, and leaves the cluster after it has joined. Start must be called before any actor is
// spawned in the ActorSystem, and instead of StartMember.
func Start(ctx context.Context, rt *rdma.Runtime, cfg Config) (*Member, error) {
	sys := rt.System()
	switch {
	case cfg.Provider == nil:
		return nil, errors.New("pacluster: a Provider is needed")
	case len(sys.ProcessRegistry.RemoteHandlers) > 0:
		return nil, ErrStarted
	case cfg.Contact != nil && cfg.TTL <= 0:
		return nil, errors.New("pacluster: Contact needs a TTL")
	case cfg.Contact == nil || cfg.Client: // a client has no grains
		cfg.TTL = 0
	}
	m := &Member{
		sys: sys, client: cfg.Client, shell: &shell{},
		expelled: make(chan struct{}), started: make(chan struct{}), leaving: make(chan struct{}), completed: make(chan struct{}),
	}
	m.governor = newGovernor(m, cfg.TTL)
	m.subscriptions = newSubscriptions(sys, m.exposesActor)
	node, err := remoting.Start(rt, m.remotingConfig(cfg))
	if err != nil {
		return nil, err
	}
	m.Node = node
	m.exposing.Store(node)
	m.governor.updateRules(func(r *rules, _ time.Duration) { r.name = node.Name() })
	if err := m.joinCluster(ctx, cfg); err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), failedFor)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("pacluster: the cluster does not start: %w", err), m.Shutdown(end))
	}
	go m.probeDeparted()
	go m.reportDenials()
	return m, nil
}

// failedFor is how long the started parts may take to end when a later one has failed.
const failedFor = 5 * time.Second

// remotingConfig returns the node's configuration.
func (m *Member) remotingConfig(cfg Config) remoting.Config {
	c := cfg.Remoting
	c.Expose = mergeExpose(memberExpose(m.sys.ID, len(cfg.Spawn) > 0), c.Expose)
	if c.Codec == nil {
		c.Codec = codec.New()
	}
	c.Codec = serialized{
		Codec: c.Codec, spawn: cfg.Spawn, kinds: cfg.Kinds, halted: m.isHalted, subscriptions: m.subscriptions,
		gossip: newGossipLimit(c.MaxMessage, m.governor.memberIDs, m.sys.Logger()),
	}
	c.Member = m.sys.ID
	admit := c.Admit
	c.Admit = func(p remoting.Peer) error {
		if m.isBlocked(cfg.Cluster, p.Member) {
			return refusal{&blocked{m.governor.ownSide()}}
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

// exposesActor reports whether every member may send messages to an actor of this one.
func (m *Member) exposesActor(id string) bool {
	node := m.exposing.Load()
	return node != nil && node.Exposes(remoting.Reach, id)
}

// isBlocked reports whether a node is a former member. Some providers, such as etcd's, put the
// cluster's name before the actor system's id.
func (m *Member) isBlocked(name, id string) bool {
	list := m.blocked.Load()
	return list != nil && (list.IsBlocked(id) || list.IsBlocked(name+"@"+id))
}

// joinCluster starts Proto.Actor's cluster.
func (m *Member) joinCluster(ctx context.Context, cfg Config) error {
	if cfg.Lookup == nil {
		cfg.Lookup = disthash.New()
		m.topologies = make(chan *cluster.ClusterTopology)
		go m.stopMisplaced()
	}
	if cfg.TTL > 0 {
		go m.governor.watchContact(cfg.Contact, cfg.TTL)
	}
	// The provider and the rules find lost members. A member that stood still for longer than the
	// expiration would block all the others.
	options := append([]cluster.ConfigOption{cluster.WithKinds(cfg.Kinds...), cluster.WithHeartbeatExpiration(never)}, cfg.Options...)
	provider, lookup := observed{cfg.Provider, m.governor}, gated{cfg.Lookup, m.isHalted}
	config := cluster.Configure(cfg.Cluster, provider, lookup, m.shell.remoteConfig(m.Node.Name(), cfg.Spawn), options...)
	stock := config.ClusterContextProducer
	config.ClusterContextProducer = func(c *cluster.Cluster) cluster.Context { return calls{stock(c), m.isHalted, m.subscriptions} }
	var err error
	go func() {
		defer close(m.started)
		err = callGuarded(func() error { m.startCluster(config); return nil })
	}()
	select {
	case <-m.started:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// never is longer than a process lives.
const never = 1 << 62 * time.Nanosecond

// startCluster calls functions of Proto.Actor's that panic.
func (m *Member) startCluster(config *cluster.Config) {
	m.Cluster = cluster.New(m.sys, config)
	m.observer = m.sys.EventStream.Subscribe(m.handleEvent)
	// SpawnNamed fails only if the name is in use.
	m.present, _ = m.sys.Root.SpawnNamed(actor.PropsFromFunc(m.governor.receivePresence), presenceName(m.sys.ID))
	if m.client {
		m.Cluster.StartClient()
	} else {
		m.Cluster.StartMember()
	}
}

var errExited = errors.New("it called runtime.Goexit")

// callGuarded calls do on another goroutine, which do may end. It returns a panic as an error.
func callGuarded(do func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			switch v := recover().(type) {
			case nil:
			case error:
				err = v
			default:
				err = fmt.Errorf("%v", v)
			}
			done <- err
		}()
		err = do()
	}()
	return <-done
}
