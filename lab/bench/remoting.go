package main

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/remoting"
)

// The contestants of package remoting: by the placement of their actors, and by the overflow of a
// queue. A message that does not fit is a dead letter, unless the name states that its sender
// waits.
const (
	ours        = "remoting" // Proto.Actor's own mailbox
	oursOnLoop  = "remoting-onloop"
	oursOffLoop = "remoting-offloop"
	oursWaits   = "remoting-block"
	onLoopWaits = "remoting-onloop-block"
)

// queueMiB is the limit of the bytes queued for a peer, and of those received from one: the
// default.
const queueMiB = 8

// ourNode is a node of package remoting.
type ourNode struct {
	contest.World
	node  *remoting.Node
	props []actor.PropsOption
}

// openOurs returns the opener of such a contestant.
func openOurs(overflow remoting.Overflow, place func(*rdma.Runtime) actor.PropsOption) func(measure.Entry) (node, error) {
	return func(e measure.Entry) (node, error) {
		w, err := contest.OpenWorldIn(newSystem(), e, rdma.Config{})
		if err != nil {
			return nil, err
		}
		n := &ourNode{World: w}
		if place != nil {
			n.props = append(n.props, place(w.RT))
		}
		everything := []string{"*"}
		n.node, err = remoting.Start(w.RT, remoting.Config{
			Listen: contest.Loopback, Queue: queueMiB << 20, Overflow: overflow, Expose: remoting.Expose{Reach: everything, Watch: everything},
		})
		return n, err
	}
}

func onLoop(rt *rdma.Runtime) actor.PropsOption  { return rt.OnLoop() }
func offLoop(rt *rdma.Runtime) actor.PropsOption { return rt.OffLoop() }

func (n *ourNode) System() *actor.ActorSystem { return n.World.System }

func (n *ourNode) Addr() string { return n.node.Name() }

func (n *ourNode) Props(receive actor.ReceiveFunc) *actor.Props {
	return actor.PropsFromFunc(receive, n.props...)
}

func (n *ourNode) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(n.node.Shutdown(ctx), n.World.Close())
}
