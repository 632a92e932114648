package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// victim is the role of a process to be killed. It has a node with watched actors, or it is a
// member of a cluster.
type victim struct {
	Victim bool
	Entry  measure.Entry
	Ports  ports // of the members; nil: no cluster
}

// watchers is how many actors watch one of a victim's actors each.
const watchers = 100

// lastHeard is the time from the kill until the last watcher was notified, the worst of all kills.
const lastHeard = "last, worst ms"

// runVictim reports whether this process is a victim. If it is, runVictim first works until it is
// killed, or its parent has ended.
func runVictim() (child bool, err error) {
	var r victim
	if child, err = measure.Role(&r); !child || err != nil || !r.Victim {
		return false, err
	}
	begin := r.startWatched
	if r.Ports != nil {
		begin = r.startMember
	}
	addr, err := begin()
	if err == nil {
		err = measure.Report(addr)
	}
	bufio.NewScanner(os.Stdin).Scan() // until the parent has ended
	return true, err
}

// startWatched starts a node with actors that are watched, and returns its address.
func (r victim) startWatched() (addr string, err error) {
	n, err := openNode(r.Entry, echoName, echoMessages)
	if err != nil {
		return "", err
	}
	for i := range watchers {
		props := n.Props(func(actor.Context) {})
		if _, err := n.System().Root.SpawnNamed(props, watchedName(i)); err != nil {
			return "", err
		}
	}
	return n.Addr(), nil
}

// startMember joins a cluster, and returns the member's address.
func (r victim) startMember() (addr string, err error) {
	m, err := joinCluster(r.Entry, r.Ports, true)
	if err != nil {
		return "", err
	}
	return m.Cluster().ActorSystem.Address(), nil
}

// startVictim starts a victim, and returns its address.
func startVictim(r victim) (c *measure.Child, addr string, err error) {
	if c, err = measure.Start(context.Background(), "the victim", -1, 2, r); err != nil {
		return nil, "", err
	}
	if err := c.Ask("", &addr); err != nil {
		return nil, "", errors.Join(err, c.Stop())
	}
	return c, addr, nil
}

func killChild(c *measure.Child) error {
	err := c.Signal(unix.SIGKILL)
	_ = c.Stop() // its error is the signal
	return err
}

func watchedName(i int) string { return fmt.Sprintf("watched-%d", i) }

// killer has a node whose actors watch actors of victims.
type killer struct {
	node
	e     measure.Entry
	heard chan time.Time
}

// serveNothing serves a scenario that needs no server.
func serveNothing(measure.Entry) (measure.Service, error) {
	return measure.NewService("", func() error { return nil }), nil
}

func dialKill(_ string, e measure.Entry) (measure.Client, error) {
	n, err := openNode(e, "", nil)
	return &killer{n, e, make(chan time.Time, watchers)}, err
}

// Run implements measure.Client. It kills one victim after the other.
func (k *killer) Run(d time.Duration) (measure.Sample, error) {
	times, worst := stats.NewTimes(3), time.Duration(0)
	begun := time.Now()
	kills := 0
	for over := false; !over; over = time.Since(begun) >= d {
		heard, err := k.killVictim()
		if err != nil {
			return measure.Sample{}, err
		}
		for _, took := range heard {
			times.Add(took)
			worst = max(worst, took)
		}
		kills++
	}
	return measure.Sample{
		N: kills, Seconds: time.Since(begun).Seconds(), Times: measure.Percentiles(times),
		More: measure.Metrics{lastHeard: stats.Micros(worst) / 1000},
	}, nil
}

// killVictim starts a victim, makes the watchers watch its actors, kills it, and returns when each
// watcher was notified.
func (k *killer) killVictim() ([]time.Duration, error) {
	c, addr, err := startVictim(victim{Victim: true, Entry: k.e})
	if err != nil {
		return nil, err
	}
	pids, err := k.spawnWatchers(addr)
	defer func() {
		for _, pid := range pids {
			k.System().Root.Stop(pid)
		}
	}()
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	killed := time.Now()
	if err := killChild(c); err != nil {
		return nil, err
	}
	var heard []time.Duration
	for range watchers {
		select {
		case at := <-k.heard:
			heard = append(heard, at.Sub(killed))
		case <-time.After(patience):
			return nil, fmt.Errorf("%d of %d watchers heard that their peer was killed", len(heard), watchers)
		}
	}
	return heard, nil
}

// spawnWatchers spawns the watchers, and waits until all of them watch.
func (k *killer) spawnWatchers(addr string) (pids []*actor.PID, err error) {
	root := k.System().Root
	watching := make(chan struct{}, watchers)
	for i := range watchers {
		pids = append(pids, root.Spawn(k.Props(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Watch(actor.NewPID(addr, watchedName(i)))
				watching <- struct{}{}
			case *actor.Terminated:
				k.heard <- time.Now()
			}
		})))
	}
	for range watchers {
		<-watching
	}
	// This was sent after the requests to watch.
	_, err = requestActor[*wrapperspb.BytesValue](k.node, actor.NewPID(addr, echoName), wrapperspb.Bytes(nil))
	return pids, err
}
