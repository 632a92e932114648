package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"golang.org/x/sys/unix"
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
	grainKill   = "grain-kill"
	roomsKilled = 30                     // grains that are requested after their member was killed
	refresh     = 200 * time.Millisecond // of the cluster's provider
	joining     = time.Minute            // at most
)

// The metrics of the killed member.
const (
	memberLeft  = "member left ms"
	allAnswered = "all answered ms"
	afterLeft   = "after it left ms"
)

// member is a member of a cluster.
type member struct {
	cluster *cluster.Cluster
	close   func() error
}

// rotate returns the addresses in at, which commas separate, from the n-th on.
func rotate(at string, n int) []string {
	list := strings.Split(at, ",")
	return append(list[n:len(list):len(list)], list[:n]...)
}

// joinCluster starts a member, which may have rooms. at is where the providers of all members
// answer, starting with this member's; they are the same for all contestants. A room echoes, and
// returns its member's address.
func joinCluster(e measure.Entry, at []string, rooms bool) (member, error) {
	provider, err := pacluster.Automanaged{Listen: at[0], Members: at, Refresh: refresh}.Provider()
	if err != nil {
		return member{}, err
	}
	kinds := func(options ...actor.PropsOption) []*cluster.Kind {
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
	place, ok := placements[e.Contestant]
	if !ok {
		c := cluster.New(newSystem(),
			cluster.Configure(clusterName, provider, disthash.New(), remote.Configure("127.0.0.1", 0), cluster.WithKinds(kinds()...)))
		c.StartMember()
		return member{c, func() error {
			c.Shutdown(false)
			return nil
		}}, nil
	}
	w, err := contest.OpenWorldIn(newSystem(), e, rdma.Config{})
	if err != nil {
		return member{}, err
	}
	m, err := pacluster.Start(context.Background(), w.RT, pacluster.Config{
		Cluster: clusterName, Provider: provider, Kinds: kinds(place(w.RT)...), Remoting: remoting.Config{Listen: contest.Loopback},
	})
	if err != nil {
		return member{}, errors.Join(err, w.Close())
	}
	return member{m.Cluster, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return errors.Join(m.Shutdown(ctx), w.Close())
	}}, nil
}

// freeAddrs returns n addresses with free ports.
func freeAddrs(n int) (at []string, err error) {
	for range n {
		l, err := net.Listen("tcp", contest.Loopback)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		at = append(at, l.Addr().String())
	}
	return at, nil
}

// serveGrains starts the first of n members. Its address is that of all.
func serveGrains(n int) func(measure.Entry) (measure.Service, error) {
	return func(e measure.Entry) (measure.Service, error) {
		at, err := freeAddrs(n)
		if err != nil {
			return measure.Service{}, err
		}
		m, err := joinCluster(e, at, true)
		return measure.Service{Addr: strings.Join(at, ","), Close: m.close}, err
	}
}

// askLong repeats a request until there is an answer.
func (m member) askLong(room string) (where string, err error) {
	for begun := time.Now(); time.Since(begun) < joining; time.Sleep(time.Millisecond) {
		got, failed := m.cluster.Request(room, roomKind, wrapperspb.String(""))
		if a, ok := got.(*wrapperspb.StringValue); ok {
			return a.GetValue(), nil
		}
		err = failed
	}
	return "", fmt.Errorf("%s does not answer: %w", room, err)
}

// grains are the contestants that make requests to grains.
var grains = contest.Contestants{
	stock:      {Serve: serveGrains(2), Dial: dialGrain},
	ours:       {Serve: serveGrains(2), Dial: dialGrain},
	oursOnLoop: {Serve: serveGrains(2), Dial: dialGrain},
}

// dialGrain joins with a member that has no grains.
func dialGrain(addr string, e measure.Entry) (contest.Calls, error) {
	const room = "room"
	m, err := joinCluster(e, rotate(addr, 1), false)
	if err != nil {
		return contest.Calls{}, err
	}
	if _, err := m.askLong(room); err != nil {
		return contest.Calls{}, errors.Join(err, m.close())
	}
	return contest.Calls{
		Call: func(p, _ []byte) ([]byte, error) {
			return bytesOf(m.cluster.Request(room, roomKind, &wrapperspb.BytesValue{Value: p}))
		},
		Close: m.close,
	}, nil
}

// joinGrainKill is the third member, which is killed. Its address is that of its grains.
func joinGrainKill(addr string, e measure.Entry) (measure.Service, error) {
	m, err := joinCluster(e, rotate(addr, 2), true)
	if err != nil {
		return measure.Service{}, err
	}
	return measure.Service{Addr: m.cluster.ActorSystem.Address(), Close: m.close}, nil
}

// dialGrainKill joins as the second of three members, and kills the third one, however long it is
// to run.
func dialGrainKill(addr string, e measure.Entry) (measure.Client, error) {
	m, err := joinCluster(e, rotate(addr, 1), true)
	if err != nil {
		return measure.Client{}, err
	}
	shrunk := make(chan time.Time, 1) // when the provider found that a member has left
	m.cluster.ActorSystem.EventStream.Subscribe(func(ev any) {
		if t, ok := ev.(*cluster.ClusterTopology); ok && len(t.Left) > 0 {
			select {
			case shrunk <- time.Now():
			default: // only one is killed
			}
		}
	})
	return measure.Client{Run: func(time.Duration) (s measure.Sample, err error) {
		c, at, err := measure.StartJoiner(grainKill, e, addr)
		if err != nil {
			return s, err
		}
		rooms, err := m.roomsAt(at)
		if err != nil {
			return s, errors.Join(err, c.Stop())
		}
		killed := time.Now()
		if err := c.Signal(unix.SIGKILL); err != nil {
			return s, err
		}
		_ = c.Stop() // its error is the signal
		times, answered, err := m.askAll(rooms, killed)
		if err != nil {
			return s, err
		}
		left := (<-shrunk).Sub(killed)
		return measure.Sample{
			N: len(rooms), Seconds: answered.Seconds(), Times: measure.Percentiles(times),
			More: measure.Metrics{
				memberLeft: stats.Micros(left) / 1000, allAnswered: stats.Micros(answered) / 1000, afterLeft: stats.Micros(answered-left) / 1000,
			},
		}, nil
	}, Close: m.close}, nil
}

// askAll sends requests to all rooms concurrently, and returns the time of each answer and of the
// last.
func (m member) askAll(rooms []string, killed time.Time) (stats.Times, time.Duration, error) {
	times, last := stats.NewTimes(3), time.Duration(0)
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs error
	for _, room := range rooms {
		all.Go(func() {
			_, err := m.askLong(room)
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
func (m member) roomsAt(addr string) (rooms []string, err error) {
	for begun := time.Now(); len(rooms) < roomsKilled; {
		room := fmt.Sprintf("room-%d", time.Now().UnixNano())
		where, err := m.askLong(room)
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
