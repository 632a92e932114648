package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/remoting"
)

// The contestants with typed remote actors. Those of package remoting differ by the placement of
// their actors, and by the overflow of a queue. A message that does not fit is a dead letter,
// unless the name states that its sender waits.
const (
	ours        = "remoting" // Proto.Actor's own mailbox
	oursOnLoop  = "remoting-onloop"
	oursOffLoop = "remoting-offloop"
	oursWaits   = "remoting-block"
	onLoopWaits = "remoting-onloop-block"
	stock       = "proto.actor" // Proto.Actor's remote, over gRPC and TCP
)

// placements are the options of the actors of each contestant of package remoting.
var placements = map[string]func(*rdma.Runtime) []actor.PropsOption{
	ours:        byDefault,
	oursOnLoop:  onLoop,
	oursOffLoop: func(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OffLoop()} },
	oursWaits:   byDefault,
	onLoopWaits: onLoop,
}

func byDefault(*rdma.Runtime) []actor.PropsOption { return nil }

func onLoop(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OnLoop()} }

// queueMiB is the limit of the bytes queued for a peer, and of those received from one: the
// default.
const queueMiB = 8

const patience = 10 * time.Second // limit for an answer

// newSystem makes an actor system that does not log errors, because it logs each end of a
// connection as one.
func newSystem() *actor.ActorSystem { return contest.NewSystem(slog.LevelError + 1) }

// node is an actor system whose actors can be reached from other processes.
type node struct {
	system *actor.ActorSystem
	addr   string              // in PIDs
	props  []actor.PropsOption // of an actor that other processes send to
	close  func() error
}

func openNode(e measure.Entry) (node, error) {
	place, ok := placements[e.Contestant]
	if !ok {
		return openStock(), nil
	}
	w, err := contest.OpenWorldIn(newSystem(), e, rdma.Config{})
	if err != nil {
		return node{}, err
	}
	everything := []string{"*"}
	cfg := remoting.Config{Listen: contest.Loopback, Queue: queueMiB << 20, Expose: remoting.Expose{Reach: everything, Watch: everything}}
	if e.Contestant == oursWaits || e.Contestant == onLoopWaits {
		cfg.Overflow = remoting.Block
	}
	n, err := remoting.Start(w.RT, cfg)
	if err != nil {
		return node{}, errors.Join(err, w.Close())
	}
	return node{w.System, n.Name(), place(w.RT), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return errors.Join(n.Shutdown(ctx), w.Close())
	}}, nil
}

// openStock opens a node of Proto.Actor's remote. If the peer stops at the same moment, the remote
// panics while it stops, because it sends on a channel that it has closed. Then only the gRPC
// server is left to be stopped.
func openStock() node {
	s := newSystem()
	r := remote.NewRemote(s, remote.Configure("127.0.0.1", 0))
	r.Start()
	return node{system: s, addr: s.Address(), close: func() error {
		defer s.Shutdown()
		defer func() {
			if recover() != nil {
				r.Shutdown(false)
			}
		}()
		r.Shutdown(true)
		return nil
	}}
}

func (n node) newProps(receive actor.ReceiveFunc) *actor.Props {
	return actor.PropsFromFunc(receive, n.props...)
}

// targetName is the name of the actor that a server has.
const targetName = "target"

// serveActor opens a node with an actor.
func serveActor(e measure.Entry, receive actor.ReceiveFunc) (measure.Service, error) {
	n, err := openNode(e)
	if err != nil {
		return measure.Service{}, err
	}
	_, err = n.system.Root.SpawnNamed(n.newProps(receive), targetName)
	return measure.Service{Addr: n.addr, Close: n.close}, err
}

// serveTyped starts an actor that echoes.
func serveTyped(e measure.Entry) (measure.Service, error) {
	return serveActor(e, func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			ctx.Respond(m)
		}
	})
}

func dialTyped(addr string, e measure.Entry) (contest.Calls, error) {
	n, err := openNode(e)
	if err != nil {
		return contest.Calls{}, err
	}
	pid := actor.NewPID(addr, targetName)
	return contest.Calls{
		Call: func(p, _ []byte) ([]byte, error) {
			return bytesOf(n.system.Root.RequestFuture(pid, &wrapperspb.BytesValue{Value: p}, patience).Result())
		},
		Close: n.close,
	}, nil
}

// bytesOf returns the bytes of an answer.
func bytesOf(answer any, err error) ([]byte, error) {
	if m, ok := answer.(*wrapperspb.BytesValue); ok || err != nil {
		return m.GetValue(), err
	}
	return nil, fmt.Errorf("the answer is a %T", answer)
}

// typedFlow sends typed messages in one direction. The receiving actor answers each batch with the
// number of messages that have arrived so far.
type typedFlow struct {
	Size, Batch int
	// Window bounds the unanswered messages. 0: no bound.
	Window int
}

// accepted is the rate at which the sender sends, whether or not messages arrive.
const accepted = "accepted/s"

// serve implements Scenario.Serve.
func (f typedFlow) serve(e measure.Entry) (measure.Service, error) {
	var reader *actor.PID // of the answers
	got := 0
	return serveActor(e, func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *wrapperspb.BoolValue: // a run starts
			reader, got = ctx.Sender(), 0
			ctx.Respond(wrapperspb.Int64(0))
		case *wrapperspb.BytesValue:
			if got++; got%f.Batch == 0 {
				ctx.Send(reader, wrapperspb.Int64(int64(got)))
			}
		}
	})
}

// dial implements Scenario.Dial.
func (f typedFlow) dial(addr string, e measure.Entry) (measure.Client, error) {
	const room = 1 << 16 // for answers that are not yet read
	n, err := openNode(e)
	if err != nil {
		return measure.Client{}, err
	}
	c := &flowClient{f, n.system.Root, actor.NewPID(addr, targetName), nil, make(chan int, room)}
	c.reader = c.root.Spawn(n.newProps(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
			c.answers <- int(m.GetValue())
		}
	}))
	return measure.Client{Run: c.run, Close: n.close}, nil
}

// flowClient sends from a goroutine, and has an actor for the answers.
type flowClient struct {
	typedFlow
	root       *actor.RootContext
	to, reader *actor.PID
	answers    chan int // numbers of messages that have arrived
}

// awaitMessages waits until want messages have arrived, and returns how many have.
func (c *flowClient) awaitMessages(want, arrived int) (int, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for arrived < want {
		select {
		case arrived = <-c.answers:
			late.Reset(patience)
		case <-late.C:
			return arrived, fmt.Errorf("%d of %d messages arrived", arrived, want)
		}
	}
	return arrived, nil
}

func (c *flowClient) run(d time.Duration) (measure.Sample, error) {
	c.root.RequestWithCustomSender(c.to, wrapperspb.Bool(true), c.reader)
	if got := <-c.answers; got != 0 {
		return measure.Sample{}, fmt.Errorf("%d messages arrived before the first", got)
	}
	m := wrapperspb.Bytes(contest.NewPayload(c.Size))
	begun := time.Now()
	sent, arrived := 0, 0
	var err error
	for err == nil && time.Since(begun) < d {
		for range c.Batch {
			c.root.Send(c.to, m)
		}
		if sent += c.Batch; c.Window > 0 {
			arrived, err = c.awaitMessages(sent-c.Window+c.Batch, arrived)
		}
	}
	sending := time.Since(begun).Seconds()
	if err == nil {
		arrived, err = c.awaitMessages(sent, arrived)
	}
	return measure.Sample{
		N: arrived, Seconds: time.Since(begun).Seconds(), Bytes: arrived * c.Size,
		More: measure.Metrics{accepted: float64(sent) / sending},
	}, err
}

// An actor is sent more than it can handle.
const (
	sinkMessages = 300_000
	quickSink    = 1000
	sinkSize     = 1 << 10
	sinkPause    = time.Millisecond // per message
	sinkSending  = 5 * time.Second  // at most
	sinkSettling = 2 * time.Second  // afterwards, until the memory is measured
)

// The metrics of the slow actor.
const (
	sinkServerMiB = "server peak MiB"
	sinkClientMiB = "client peak MiB"
	sinkSent      = "sent"
	sinkRefused   = "refused" // the sender is notified
	sinkDelivered = "delivered"
)

func peakMiB() float64 { return float64(stats.ProcessMemory("VmHWM")) / (1 << 20) }

func serveSink(e measure.Entry) (measure.Service, error) {
	var delivered atomic.Int64
	var over atomic.Bool // the actor handles the remaining messages immediately
	s, err := serveActor(e, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); !ok {
			return
		}
		delivered.Add(1)
		if !over.Load() {
			time.Sleep(sinkPause)
		}
	})
	end := s.Close
	s.Close = func() error {
		over.Store(true)
		return end()
	}
	s.Report = func() measure.Metrics {
		return measure.Metrics{sinkServerMiB: peakMiB(), sinkDelivered: float64(delivered.Load())}
	}
	return s, err
}

func dialSink(addr string, e measure.Entry) (measure.Client, error) {
	n, err := openNode(e)
	if err != nil {
		return measure.Client{}, err
	}
	var refused atomic.Int64
	n.system.EventStream.Subscribe(func(m any) {
		if _, ok := m.(*actor.DeadLetterEvent); ok {
			refused.Add(1)
		}
	})
	messages, settling := sinkMessages, sinkSettling
	if e.Quick {
		messages, settling = quickSink, 0
	}
	to := actor.NewPID(addr, targetName)
	return measure.Client{Run: func(time.Duration) (measure.Sample, error) {
		begun := time.Now()
		sent := 0
		for ; sent < messages && time.Since(begun) < sinkSending; sent++ {
			// Each message has separate memory, as in a real program.
			n.system.Root.Send(to, wrapperspb.Bytes(contest.NewPayload(sinkSize)))
		}
		took := time.Since(begun)
		time.Sleep(settling)
		return measure.Sample{
			N: sent, Seconds: took.Seconds(), Bytes: sent * sinkSize,
			More: measure.Metrics{sinkSent: float64(sent), sinkRefused: float64(refused.Load()), sinkClientMiB: peakMiB()},
		}, nil
	}, Close: func() error {
		_ = n.close() // it reports that not everything was sent
		return nil
	}}, nil
}
