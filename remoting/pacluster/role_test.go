package pacluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
)

// role configures a member's process.
type role struct {
	Name, Listen string
	Health       []string // of all members, its own first
	Etcd         string   // the provider is etcd, there
	Contact      bool     // observe the contact with etcd
	Client       bool
	Dial         map[string]string // names that are no addresses
	Nosy         bool              // print the accesses of peers to its actors
	Stuck        bool              // its provider never ends
	Stock        bool              // it is a member of Proto.Actor's own, over gRPC
	// it connects with the first, and accepts them all; none: without
	Keys []string
}

const (
	testRefresh = 200 * time.Millisecond
	grainKind   = "grain"
	spawnKind   = "spawned"
)

// process is a member's process.
type process struct {
	role       role
	sys        *actor.ActorSystem
	m          *Member
	heard      atomic.Int64 // messages of pub/sub
	broadcasts atomic.Int64
	members    atomic.Pointer[string]
	print      sync.Mutex
	keys       rdma.Keyring
	apart      atomic.Bool // admit no peer
}

// line prints a line for the test.
func (p *process) line(format string, args ...any) {
	p.print.Lock()
	defer p.print.Unlock()
	fmt.Printf(format+"\n", args...)
}

// runMember runs a member's process: it executes the commands that it reads, a line each, and
// answers with a line that begins with "= ".
func runMember(text string) int {
	p := &process{}
	p.members.Store(new(""))
	if err := json.Unmarshal([]byte(text), &p.role); err != nil {
		p.line("! %v", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	if err := p.run(ctx); err != nil {
		p.line("! %v", err)
		return 1
	}
	return 0
}

func (p *process) run(ctx context.Context) error {
	level := slog.LevelError + 1
	if os.Getenv("MEMBER_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(topicLog{slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}), p})
	p.sys = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	rt, err := rdma.Open(p.sys, rdma.Config{Device: iwarp.New(), Logger: log})
	if err != nil {
		return err
	}
	p.sys.EventStream.Subscribe(func(ev any) {
		switch ev := ev.(type) {
		case *cluster.ActivationTerminated:
			p.broadcasts.Add(1)
		case *cluster.ClusterTopology:
			var all []string
			for _, m := range ev.Members {
				all = append(all, m.Address())
			}
			p.members.Store(new(sorted(all...)))
		case *remoting.Refused:
			if ev.By == p.role.Name {
				p.line("refused %.100s", ev.Target.Id)
			}
		case *Suspended, *Resumed, *Expelled:
			p.line("event %v", ev)
		}
	})
	if p.role.Stock {
		err = p.startStock()
	} else if cfg, bad := p.config(rt); bad != nil {
		err = bad
	} else {
		p.m, err = Start(ctx, rt, cfg)
	}
	if err != nil {
		return errors.Join(err, rt.Shutdown(context.Background()))
	}
	p.line("= member %s", p.sys.ID)
	go func() {
		<-p.m.completed
		p.line("shut down")
	}()
	commands := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			commands <- in.Text()
		}
		stop := time.AfterFunc(time.Minute, func() { os.Exit(3) }) // the test has gone
		defer stop.Stop()
		close(commands)
	}()
	p.serve(ctx, commands)
	end, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if p.role.Stock {
		p.m.Cluster.Shutdown(false)
		return rt.Shutdown(end)
	}
	err = p.m.Shutdown(end)
	select {
	case <-p.m.Expelled():
		if errors.Is(err, unix.ECONNRESET) { // the others have ended their connections
			p.line("%v", err)
			err = nil
		}
	default:
	}
	err = errors.Join(err, rt.Shutdown(end))
	p.sys.Shutdown()
	p.line("= left")
	return err
}

// topicLog also prints that a topic of Proto.Actor's removes subscribers.
type topicLog struct {
	slog.Handler
	p *process
}

func (l topicLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || l.Handler.Enabled(ctx, level)
}

func (l topicLog) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "Topic removed subscribers") {
		l.p.line("topic removes subscribers")
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// serve executes the commands that it reads, each on a separate goroutine, until it is terminated.
func (p *process) serve(ctx context.Context, commands <-chan string) {
	expelled := p.m.Expelled()
	for {
		select {
		case c, ok := <-commands:
			if !ok {
				return
			}
			go func() {
				if answer, err := p.do(strings.Fields(c)); err != nil {
					p.line("= %s: error %v", c, err)
				} else {
					p.line("= %s: %s", c, answer)
				}
			}()
		case <-expelled:
			expelled = nil
			p.line("expelled")
		case <-ctx.Done():
			return
		}
	}
}

func (p *process) config(rt *rdma.Runtime) (Config, error) {
	provider, err := p.provider()
	cfg := Config{
		Cluster: "test", Provider: provider, Client: p.role.Client,
		Spawn: map[string]*actor.Props{spawnKind: actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
				ctx.Respond(m)
			}
		})},
		Remoting: remoting.Config{Name: p.role.Name, Listen: p.role.Listen, Patience: 5 * time.Second},
	}
	if !p.role.Client {
		cfg.Kinds = []*cluster.Kind{p.grains()}
	}
	if len(p.role.Keys) > 0 {
		if _, err := p.useKeys(p.role.Keys); err != nil {
			return cfg, err
		}
		cfg.Remoting.Admit = p.admit
		cfg.Remoting.ID.Security = &rdma.Security{Mode: rdma.PSK, Keys: &p.keys}
	}
	if p.role.Dial != nil {
		cfg.Remoting.Resolve = func(_ context.Context, name string) (string, error) { return p.role.Dial[name], nil }
	}
	if p.role.Contact {
		cfg.Contact, cfg.TTL = p.contact()
	}
	if p.role.Nosy {
		cfg.Remoting.Allow = func(peer remoting.Peer, a remoting.Access, name string) error {
			p.line("access %v %s", a, name)
			return nil
		}
	}
	return cfg, err
}

func (p *process) grains() *cluster.Kind {
	return cluster.NewKind(grainKind, actor.PropsFromProducer(func() actor.Actor { return &grain{p: p} }))
}

// startStock starts a member as a program without this package does.
func (p *process) startStock() error {
	provider, err := p.provider()
	if err != nil {
		return err
	}
	host, text, err := net.SplitHostPort(p.role.Name)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	dial := remote.WithDialOptions(grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", cmp.Or(p.role.Dial[addr], addr))
		}))
	c := cluster.New(p.sys, cluster.Configure("test", provider, disthash.New(), remote.Configure(host, port, dial), cluster.WithKinds(p.grains())))
	p.m = &Member{Cluster: c}
	c.StartMember()
	return nil
}

// grain answers with its location, counts, and delays an answer on request.
type grain struct {
	p     *process
	id    string
	count int
}

func (g *grain) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *cluster.ClusterInit:
		g.id = m.Identity.Identity
	case *actor.Stopped:
		g.p.line("stopped %s.", g.id)
	case *wrapperspb.StringValue:
		ctx.Respond(wrapperspb.String(ctx.Self().Address))
	case *wrapperspb.Int64Value:
		g.count++
		g.p.line("counted %s %d", g.id, g.count)
		time.Sleep(time.Duration(m.Value) * time.Millisecond)
		ctx.Respond(wrapperspb.Int64(int64(g.count)))
	}
}

// do executes one command.
func (p *process) do(c []string) (string, error) {
	cl := p.m.Cluster
	switch c[0] {
	case "members":
		return *p.members.Load(), nil
	case "where": // identity
		res, err := cl.Request(c[1], grainKind, wrapperspb.String(""))
		return value[*wrapperspb.StringValue](res, err)
	case "count": // identity, milliseconds
		ms, _ := strconv.Atoi(c[2])
		res, err := cl.Request(c[1], grainKind, wrapperspb.Int64(int64(ms)))
		return value[*wrapperspb.Int64Value](res, err)
	case "recover": // identities: wait until all answer
		return p.recover(c[1:])
	case "streams":
		return fmt.Sprint(p.m.Streams(), " ", p.m.shell.dialed.Load(), " ", p.m.shell.refused.Load()), nil
	case "broadcast": // as the lookup does when a grain has ended
		cl.MemberList.BroadcastEvent(&cluster.ActivationTerminated{Pid: actor.NewPID("x", "x")}, true)
		return "", nil
	case "broadcasts":
		return fmt.Sprint(p.broadcasts.Load()), nil
	case "watch-grains": // identities
		for _, id := range c[1:] {
			pid := cl.Get(id, grainKind)
			p.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					ctx.Watch(pid)
				case *actor.Terminated:
					p.line("gone %s %v", m.Who.Id, m.Why)
				}
			}))
		}
		return "", nil
	case "activate": // address, identity: ask as a member that does not know the change yet
		res, err := remoting.Result(p.sys.Root.RequestFuture(actor.NewPID(c[1], disthash.PartitionActivatorActorName),
			&cluster.ActivationRequest{ClusterIdentity: cluster.NewClusterIdentity(c[2], grainKind)}, patience))
		if err != nil {
			return "", err
		}
		return res.(*cluster.ActivationResponse).Pid.GetAddress(), nil
	case "refused":
		n := uint64(0)
		for _, i := range p.m.Node.Peers() {
			n += i.Counts.Refused
		}
		return fmt.Sprint(n), nil
	case "shell":
		return p.listening()
	case "peers":
		return fmt.Sprintf("%+v", p.m.Node.Peers()), nil
	}
	return p.more(c)
}

func (p *process) more(c []string) (string, error) {
	cl := p.m.Cluster
	switch c[0] {
	case "spawn": // address, name, kind
		res, err := cl.Remote.SpawnNamed(c[1], c[2], c[3], patience)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(res.GetPid().GetId(), " ", res.StatusCode), nil
	case "ask": // address, id
		res, err := remoting.Result(p.sys.Root.RequestFuture(actor.NewPID(c[1], c[2]), wrapperspb.String("hello"), patience))
		return value[*wrapperspb.StringValue](res, err)
	case "touch": // address, id
		_, err := remoting.Result(p.sys.Root.RequestFuture(actor.NewPID(c[1], c[2]), &actor.Touch{}, patience))
		return "", err
	case "id":
		return p.sys.ID, nil
	case "twice": // whether two members have one address
		list := p.m.Members()
		for i, m := range list {
			if slices.ContainsFunc(list[i+1:], func(o MemberInfo) bool { return o.Name == m.Name }) {
				return "true", nil
			}
		}
		return "false", nil
	case "missing": // how many members the provider does not list
		return fmt.Sprint(p.m.Counts().Missing), nil
	case "counts":
		return fmt.Sprintf("%+v", p.m.Counts()), nil
	case "watch": // address, id
		p.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				ctx.Watch(actor.NewPID(c[1], c[2]))
			case *actor.Terminated:
				p.line("terminated %s %v", m.Who.Id, m.Why)
			}
		}))
		return "", nil
	case "stop":
		p.sys.Root.Stop(actor.NewPID(c[1], c[2]))
		return "", nil
	case "subscribe": // topic
		_, err := cl.SubscribeWithReceive(c[1], func(ctx actor.Context) {
			if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
				p.line("heard %s %d", m.Value, p.heard.Add(1))
			}
		})
		return "", err
	case "actor": // id: one that is not exposed
		_, err := p.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
				p.line("%s got %s", c[1], m.Value)
			}
		}), c[1])
		return "", err
	case "expose": // id
		p.m.Node.Expose(remoting.Expose{Reach: []string{c[1]}})
		return "", nil
	case "subscribe-pid": // topic, address, id
		_, err := cl.SubscribeByPid(c[1], actor.NewPID(c[2], c[3]))
		return "", err
	case "heard":
		return fmt.Sprint(p.heard.Load()), nil
	case "unsubscribe-pid":
		_, err := cl.UnsubscribeByPid(c[1], actor.NewPID(c[2], c[3]))
		return "", err
	case "deliver": // address, topic, text, addresses and ids: as if the topic were here
		return p.deliver(c[1], c[2], c[3], c[4:])
	case "publish": // topic, text
		_, err := cl.Publisher().Publish(context.Background(), c[1], wrapperspb.String(c[2]))
		return "", err
	case "publish-stop": // topic
		_, err := cl.Publisher().Publish(context.Background(), c[1], &actor.PoisonPill{}, cluster.WithTimeout(2*time.Second))
		return "", err
	case "set": // key, value
		cl.Gossip.SetState(c[1], wrapperspb.String(c[2]))
		return "", nil
	case "flood": // address, names, bytes: gossip about members that do not exist
		return p.flood(c[1], c[2], c[3])
	case "heap":
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return fmt.Sprint(m.HeapAlloc), nil
	case "forge": // address, id: as if that member had left
		return p.forge(c[1], c[2])
	case "answered": // id: when the latest question was that it has answered
		var at time.Duration
		p.m.governor.updateRules(func(r *rules, _ time.Duration) { at = r.members[c[1]].answered })
		return at.String(), nil
	case "get": // key
		return p.gossip(c[1])
	case "keys": // the first one to connect with
		return p.useKeys(c[1:])
	case "disconnect":
		return p.disconnect()
	case "topic-at": // topic
		return cl.Get(c[1], cluster.TopicActorKind).GetAddress(), nil
	case "dial-grpc": // address: as a remote.EndpointConnectedEvent would
		p.sys.EventStream.Publish(&remote.EndpointConnectedEvent{Address: c[1]})
		return "", nil
	}
	return p.odd(c)
}

func (p *process) gossip(key string) (string, error) {
	state, err := p.m.Cluster.Gossip.GetState(key)
	if err != nil {
		return "", err
	}
	var all []string
	for _, v := range state {
		var text wrapperspb.StringValue
		if err := v.Value.UnmarshalTo(&text); err != nil {
			return "", err
		}
		all = append(all, text.Value)
	}
	slices.Sort(all)
	return strings.Join(all, ","), nil
}

// forge sends a member gossip that this one has made up, which contains that another one has left.
func (p *process) forge(addr, id string) (string, error) {
	values := make(map[string]*cluster.GossipKeyValue)
	for i, key := range []string{cluster.GracefullyLeftKey, leftKey} {
		values[key] = &cluster.GossipKeyValue{SequenceNumber: int64(1<<40 + i), Value: &anypb.Any{TypeUrl: "type.googleapis.com/google.protobuf.Empty"}}
	}
	_, err := remoting.Result(p.sys.Root.RequestFuture(actor.NewPID(addr, cluster.DefaultGossipActorName), &cluster.GossipRequest{
		FromMemberId: p.sys.ID, State: &cluster.GossipState{Members: map[string]*cluster.GossipMemberState{id: {Values: values}}},
	}, patience))
	return "", err
}

// flood sends a member gossip about so many members that do not exist, each with one value.
func (p *process) flood(addr, names, size string) (string, error) {
	n, _ := strconv.Atoi(names)
	bytes, _ := strconv.Atoi(size)
	value := &anypb.Any{TypeUrl: "type.googleapis.com/google.protobuf.Empty", Value: make([]byte, bytes)}
	for i := range n {
		state := &cluster.GossipState{Members: map[string]*cluster.GossipMemberState{fmt.Sprint("made-up", i): {
			Values: map[string]*cluster.GossipKeyValue{"junk": {SequenceNumber: 1, Value: value}},
		}}}
		if _, err := remoting.Result(p.sys.Root.RequestFuture(actor.NewPID(addr, cluster.DefaultGossipActorName),
			&cluster.GossipRequest{FromMemberId: p.sys.ID, State: state}, patience)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// deliver sends a member a batch for subscribers that this one has chosen.
func (p *process) deliver(addr, topic, text string, subscribers []string) (string, error) {
	list := &cluster.Subscribers{}
	for i := 0; i < len(subscribers); i += 2 {
		pid := actor.NewPID(subscribers[i], subscribers[i+1])
		list.Subscribers = append(list.Subscribers, &cluster.SubscriberIdentity{Identity: &cluster.SubscriberIdentity_Pid{Pid: pid}})
	}
	p.sys.Root.Send(actor.NewPID(addr, cluster.PubSubDeliveryName), &cluster.DeliverBatchRequest{
		Subscribers: list, Topic: topic, PubSubBatch: &cluster.PubSubBatch{Envelopes: []proto.Message{wrapperspb.String(text)}},
	})
	return "", nil
}

// recover asks all grains concurrently until they answer, and returns how long the last one took,
// in milliseconds.
func (p *process) recover(ids []string) (string, error) {
	begun := time.Now()
	var all sync.WaitGroup
	var failed atomic.Int64
	for _, id := range ids {
		all.Go(func() {
			for time.Since(begun) < patience {
				if _, err := value[*wrapperspb.StringValue](p.m.Cluster.Request(id, grainKind, wrapperspb.String(""))); err == nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
			failed.Add(1)
		})
	}
	all.Wait()
	return fmt.Sprint(time.Since(begun).Milliseconds(), " ", failed.Load()), nil
}

// value returns the text of an answer.
func value[T interface{ GetValue() V }, V any](res any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	v, ok := res.(T)
	if !ok {
		return "", fmt.Errorf("the answer is a %T", res)
	}
	return fmt.Sprint(v.GetValue()), nil
}

// listening returns where the shell listens: the only socket on a loopback port that is not the
// provider's or the node's.
func (p *process) listening() (string, error) {
	known := append([]string{p.role.Name, p.role.Listen}, p.role.Health...)
	b, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		return "", err
	}
	mine := make(map[string]bool)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "", err
	}
	for _, fd := range fds {
		link, _ := os.Readlink("/proc/self/fd/" + fd.Name())
		mine[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] = true
	}
	for _, l := range strings.Split(string(b), "\n") {
		f := strings.Fields(l)
		if len(f) < 10 || f[3] != "0A" || !mine[f[9]] {
			continue
		}
		var port int
		if _, err := fmt.Sscanf(f[1], "0100007F:%X", &port); err != nil {
			continue
		}
		if addr := fmt.Sprint("127.0.0.1:", port); !slices.Contains(known, addr) {
			return addr, nil
		}
	}
	return "", errors.New("nothing else is listened at")
}
