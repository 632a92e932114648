package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/remoting"
)

// node is an actor system whose actors can be reached from other processes.
type node interface {
	System() *actor.ActorSystem
	Addr() string // in PIDs
	// Props makes the props of an actor that other processes send to.
	Props(receive actor.ReceiveFunc) *actor.Props
	Close() error
}

// openers open a node of each contestant that has typed remote actors.
var openers = map[string]func(measure.Entry) (node, error){
	stock:       openStock,
	ours:        openOurs(remoting.DeadLetter, nil),
	oursOnLoop:  openOurs(remoting.DeadLetter, onLoop),
	oursOffLoop: openOurs(remoting.DeadLetter, offLoop),
	oursWaits:   openOurs(remoting.Block, nil),
	onLoopWaits: openOurs(remoting.Block, onLoop),
}

// stock is Proto.Actor's remote, over gRPC and TCP.
const stock = "proto.actor"

// openNode opens a node, and spawns an actor with that name unless receive is nil.
func openNode(e measure.Entry, name string, receive actor.ReceiveFunc) (node, error) {
	opener, ok := openers[e.Contestant]
	if !ok {
		return nil, fmt.Errorf("%s has no remote actors", e.Contestant)
	}
	n, err := opener(e)
	if err != nil || receive == nil {
		return n, err
	}
	_, err = n.System().Root.SpawnNamed(n.Props(receive), name)
	return n, err
}

// stockNode is a node of Proto.Actor's remote.
type stockNode struct {
	system *actor.ActorSystem
	r      *remote.Remote
}

// newSystem makes an actor system that does not log errors, because it logs each end of a
// connection as one.
func newSystem() *actor.ActorSystem { return contest.NewSystem(slog.LevelError + 1) }

func openStock(measure.Entry) (node, error) {
	s := &stockNode{system: newSystem()}
	s.r = remote.NewRemote(s.system, remote.Configure("127.0.0.1", 0))
	s.r.Start()
	return s, nil
}

func (s *stockNode) System() *actor.ActorSystem { return s.system }

func (s *stockNode) Addr() string { return s.system.Address() }

func (s *stockNode) Props(receive actor.ReceiveFunc) *actor.Props {
	return actor.PropsFromFunc(receive)
}

// Close stops the node. If the peer stops at the same moment, the remote panics while it stops,
// because it sends on a channel that it has closed. Then only the gRPC server is left to be
// stopped.
func (s *stockNode) Close() error {
	defer s.system.Shutdown()
	defer func() {
		if recover() != nil {
			s.r.Shutdown(false)
		}
	}()
	s.r.Shutdown(true)
	return nil
}

const (
	echoName = "echo"
	patience = 10 * time.Second // limit for an answer
)

func echoMessages(ctx actor.Context) {
	if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
		ctx.Respond(m)
	}
}

func serveTyped(e measure.Entry) (measure.Service, error) { return openNode(e, echoName, echoMessages) }

// requestActor makes a request to an actor, and returns its answer.
func requestActor[A any](n node, to *actor.PID, m any) (a A, err error) {
	got, err := n.System().Root.RequestFuture(to, m, patience).Result()
	if err != nil {
		return a, err
	}
	a, ok := got.(A)
	if !ok {
		return a, fmt.Errorf("the answer is a %T", got)
	}
	return a, nil
}

func dialTyped(addr string, e measure.Entry) (contest.Tripper, error) {
	n, err := openNode(e, "", nil)
	if err != nil {
		return nil, err
	}
	pid := actor.NewPID(addr, echoName)
	return contest.Calls{
		CallFunc: func(p, _ []byte) ([]byte, error) {
			m, err := requestActor[*wrapperspb.BytesValue](n, pid, &wrapperspb.BytesValue{Value: p})
			return m.GetValue(), err
		},
		CloseFunc: n.Close,
	}, nil
}
