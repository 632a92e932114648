package main

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/pacluster"
)

const (
	clusterName = "bench"
	roomKind    = "room"
	roomsKilled = 30                     // grains that are requested after their member was killed
	refresh     = 200 * time.Millisecond // of the cluster's provider
	joining     = time.Minute            // at most
)

// The metrics of the scenarios with grains.
const (
	memberLeft  = "member left ms"
	allAnswered = "all answered ms"
	afterLeft   = "after it left ms"
	grpcStreams = "gRPC streams"
)

// member is a member of a cluster.
type member interface {
	Cluster() *cluster.Cluster
	Streams() int // gRPC streams that it has accepted
	Close() error
}

// ports are the provider's ports of all members, starting with the member's.
type ports []int

// newPorts returns n free ports.
func newPorts(n int) (ports, error) {
	var list ports
	for range n {
		l, err := net.Listen("tcp", contest.Loopback)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		list = append(list, l.Addr().(*net.TCPAddr).Port)
	}
	return list, nil
}

// inOrderOf returns the ports in the i-th member's order.
func (p ports) inOrderOf(i int) ports { return append(append(ports{}, p[i:]...), p[:i]...) }

func (p ports) String() string {
	var text []string
	for _, port := range p {
		text = append(text, strconv.Itoa(port))
	}
	return strings.Join(text, ",")
}

func parsePorts(s string) (list ports, err error) {
	for _, text := range strings.Split(s, ",") {
		port, bad := strconv.Atoi(text)
		list, err = append(list, port), errors.Join(err, bad)
	}
	return list, err
}

// newProvider makes a member's provider, the same for all contestants.
func (p ports) newProvider() (cluster.ClusterProvider, error) {
	var at []string
	for _, port := range p {
		at = append(at, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return pacluster.Automanaged{Listen: at[0], Members: at, Refresh: refresh}.Provider()
}

// joiners start a member, which may have rooms, for each contestant that has clusters.
var joiners = map[string]func(e measure.Entry, p ports, rooms bool) (member, error){
	stock:      joinStock,
	ours:       joinOurs(nil),
	oursOnLoop: joinOurs(onLoop),
}

func joinCluster(e measure.Entry, p ports, rooms bool) (member, error) {
	joiner, ok := joiners[e.Contestant]
	if !ok {
		return nil, fmt.Errorf("%s has no clusters", e.Contestant)
	}
	return joiner(e, p, rooms)
}

// memberKinds returns the kinds of a member. A room echoes, and returns its member's address.
func memberKinds(rooms bool, options ...actor.PropsOption) []*cluster.Kind {
	if !rooms {
		return nil
	}
	return []*cluster.Kind{cluster.NewKind(roomKind, actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *wrapperspb.BytesValue:
			ctx.Respond(m)
		case *wrapperspb.StringValue:
			ctx.Respond(wrapperspb.String(ctx.Self().Address))
		}
	}, options...))}
}

// ourMember is a member of a cluster over package remoting.
type ourMember struct {
	contest.World
	m *pacluster.Member
}

// joinOurs returns the joiner of a contestant with that placement of its rooms.
func joinOurs(place func(*rdma.Runtime) actor.PropsOption) func(measure.Entry, ports, bool) (member, error) {
	return func(e measure.Entry, p ports, rooms bool) (member, error) {
		provider, err := p.newProvider()
		if err != nil {
			return nil, err
		}
		w, err := contest.OpenWorldIn(newSystem(), e, rdma.Config{})
		if err != nil {
			return nil, err
		}
		var options []actor.PropsOption
		if place != nil {
			options = append(options, place(w.RT))
		}
		m, err := pacluster.Start(context.Background(), w.RT, pacluster.Config{
			Cluster: clusterName, Provider: provider, Kinds: memberKinds(rooms, options...),
			Remoting: remoting.Config{Listen: contest.Loopback},
		})
		return &ourMember{w, m}, err
	}
}

func (m *ourMember) Cluster() *cluster.Cluster { return m.m.Cluster }

func (m *ourMember) Streams() int { return m.m.Streams() }

// Close fails if any traffic used gRPC.
func (m *ourMember) Close() error {
	var err error
	if n := m.Streams(); n > 0 {
		err = fmt.Errorf("%d gRPC streams", n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(err, m.m.Shutdown(ctx), m.World.Close())
}

// stockMember is a member of a cluster over Proto.Actor's remote.
type stockMember struct {
	cluster *cluster.Cluster
	streams streams
}

// streams counts the gRPC streams that a server accepts.
type streams struct{ n atomic.Int64 }

func (s *streams) serverOption() grpc.ServerOption {
	return grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		s.n.Add(1)
		return h(srv, ss)
	})
}

func joinStock(_ measure.Entry, p ports, rooms bool) (member, error) {
	m := &stockMember{}
	provider, err := p.newProvider()
	if err != nil {
		return nil, err
	}
	cfg := remote.Configure("127.0.0.1", 0, remote.WithServerOptions(m.streams.serverOption()))
	m.cluster = cluster.New(newSystem(),
		cluster.Configure(clusterName, provider, disthash.New(), cfg, cluster.WithKinds(memberKinds(rooms)...)))
	m.cluster.StartMember()
	return m, nil
}

func (m *stockMember) Cluster() *cluster.Cluster { return m.cluster }

func (m *stockMember) Streams() int { return int(m.streams.n.Load()) }

func (m *stockMember) Close() error {
	m.cluster.Shutdown(false)
	return nil
}

// grainService is a server with a member that has grains.
type grainService struct {
	member
	ports ports
}

// Addr returns all ports.
func (s grainService) Addr() string { return s.ports.String() }

// Report implements measure.Reporter.
func (s grainService) Report() measure.Metrics {
	return measure.Metrics{grpcStreams: float64(s.Streams())}
}

// serveGrains starts the first of n members.
func serveGrains(n int) func(measure.Entry) (measure.Service, error) {
	return func(e measure.Entry) (measure.Service, error) {
		p, err := newPorts(n)
		if err != nil {
			return nil, err
		}
		m, err := joinCluster(e, p, true)
		return grainService{m, p}, err
	}
}

// askGrain makes a request to a grain.
func askGrain[A any](m member, room string, q any) (a A, err error) {
	got, err := m.Cluster().Request(room, roomKind, q)
	if err != nil {
		return a, err
	}
	a, ok := got.(A)
	if !ok {
		return a, fmt.Errorf("the answer is a %T", got)
	}
	return a, nil
}

// askLong repeats a request until there is an answer.
func askLong(m member, room string) (where string, err error) {
	for begun := time.Now(); time.Since(begun) < joining; time.Sleep(time.Millisecond) {
		var a *wrapperspb.StringValue
		if a, err = askGrain[*wrapperspb.StringValue](m, room, wrapperspb.String("")); err == nil {
			return a.GetValue(), nil
		}
	}
	return "", fmt.Errorf("%s does not answer: %w", room, err)
}

// dialGrain joins with a member that has no grains.
func dialGrain(addr string, e measure.Entry) (contest.Tripper, error) {
	const room = "room"
	p, err := parsePorts(addr)
	if err != nil {
		return nil, err
	}
	m, err := joinCluster(e, p.inOrderOf(1), false)
	if err != nil {
		return nil, err
	}
	if _, err := askLong(m, room); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return contest.Calls{
		CallFunc: func(p, _ []byte) ([]byte, error) {
			a, err := askGrain[*wrapperspb.BytesValue](m, room, &wrapperspb.BytesValue{Value: p})
			return a.GetValue(), err
		},
		CloseFunc: m.Close,
	}, nil
}

// grainKiller joins as the second of three members, and kills the third one.
type grainKiller struct {
	member
	e      measure.Entry
	ports  ports
	shrunk chan time.Time // when the provider found that a member has left
}

func dialGrainKill(addr string, e measure.Entry) (measure.Client, error) {
	p, err := parsePorts(addr)
	if err != nil {
		return nil, err
	}
	m, err := joinCluster(e, p.inOrderOf(1), true)
	if err != nil {
		return nil, err
	}
	k := &grainKiller{m, e, p, make(chan time.Time, 1)}
	m.Cluster().ActorSystem.EventStream.Subscribe(func(ev any) {
		if t, ok := ev.(*cluster.ClusterTopology); ok && len(t.Left) > 0 {
			select {
			case k.shrunk <- time.Now():
			default: // only one is killed
			}
		}
	})
	return k, nil
}

// Run implements measure.Client. It kills one member, however long d is.
func (k *grainKiller) Run(time.Duration) (measure.Sample, error) {
	c, addr, err := startVictim(victim{Victim: true, Entry: k.e, Ports: k.ports.inOrderOf(2)})
	if err != nil {
		return measure.Sample{}, err
	}
	rooms, err := k.roomsAt(addr)
	if err != nil {
		return measure.Sample{}, errors.Join(err, c.Stop())
	}
	killed := time.Now()
	if err := c.Signal(unix.SIGKILL); err != nil {
		return measure.Sample{}, err
	}
	_ = c.Stop() // its error is the signal
	times, answered, err := k.askAll(rooms, killed)
	if err != nil {
		return measure.Sample{}, err
	}
	left := (<-k.shrunk).Sub(killed)
	return measure.Sample{
		N: len(rooms), Seconds: answered.Seconds(), Times: measure.Percentiles(times),
		More: measure.Metrics{
			memberLeft: stats.Micros(left) / 1000, allAnswered: stats.Micros(answered) / 1000,
			afterLeft: stats.Micros(answered-left) / 1000, grpcStreams: float64(k.Streams()),
		},
	}, nil
}

// askAll sends requests to all rooms concurrently, and returns the time of each answer and of the
// last.
func (k *grainKiller) askAll(rooms []string, killed time.Time) (stats.Times, time.Duration, error) {
	times, last := stats.NewTimes(3), time.Duration(0)
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs error
	for _, room := range rooms {
		all.Go(func() {
			_, err := askLong(k, room)
			mu.Lock()
			defer mu.Unlock()
			errs, last = errors.Join(errs, err), time.Since(killed)
			times.Add(last)
		})
	}
	all.Wait()
	return times, last, errs
}

// roomsAt returns rooms that are grains of the member with that address.
func (k *grainKiller) roomsAt(addr string) (rooms []string, err error) {
	for begun := time.Now(); len(rooms) < roomsKilled; {
		room := fmt.Sprintf("room-%d", time.Now().UnixNano())
		where, err := askLong(k, room)
		if err != nil {
			return nil, err
		}
		if where == addr {
			rooms = append(rooms, room)
		}
		if time.Since(begun) > joining {
			return nil, fmt.Errorf("%d grains at %s", len(rooms), addr)
		}
	}
	return rooms, nil
}
