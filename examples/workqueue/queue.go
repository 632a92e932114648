// Package workqueue distributes jobs to workers on other machines. Workers may be killed at any
// moment, and links may be cut: no job is lost, but one may be done more than once. Its test plays
// that on simulated machines, for any number of seeds.
package workqueue

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
)

// Do and Done are the messages between a Coordinator and its workers.
type (
	Do   struct{ Job uint64 }
	Done struct{ Job uint64 }
)

var messages = codec.New(codec.JSON[*Do]("do"), codec.JSON[*Done]("done"))

// sendMessage sends one of these messages.
func sendMessage(ctx actor.Context, to *actor.PID, msg any) {
	b, err := messages.Marshal(msg)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	ctx.Request(to, rdma.NewSend(b))
}

// Coordinator has the jobs, which are numbers. It is the Handler's actor of a listener: each
// connection is a worker, which has one job at a time.
type Coordinator struct {
	// Waiting is the jobs that no worker has.
	Waiting []uint64
	// Finished is called for each job that a worker has done, perhaps more than once per job.
	Finished func(job uint64)

	idle []*actor.PID      // workers without a job
	has  map[string]uint64 // each worker's job, keyed by its connection's id
}

// Receive implements actor.Actor.
func (c *Coordinator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.has = make(map[string]uint64)
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Accept{})
	case *rdma.Established:
		c.idle = append(c.idle, ctx.Sender())
	case *rdma.Received:
		c.handleReceived(ctx, m)
	case *rdma.Closed:
		c.reclaimJob(ctx.Sender())
	}
	c.assignJobs(ctx)
}

// handleReceived marks a worker's job as done. It disconnects a peer that is not a worker: Closed
// follows.
func (c *Coordinator) handleReceived(ctx actor.Context, m *rdma.Received) {
	msg, err := messages.Unmarshal(m.Data)
	done, ok := msg.(*Done)
	if err != nil || !ok {
		ctx.Respond(&rdma.DestroyID{})
		return
	}
	c.Finished(done.Job)
	delete(c.has, ctx.Sender().Id)
	c.idle = append(c.idle, ctx.Sender())
}

// reclaimJob takes back the job of a lost worker.
func (c *Coordinator) reclaimJob(worker *actor.PID) {
	for i, w := range c.idle {
		if w.Equal(worker) {
			c.idle = append(c.idle[:i], c.idle[i+1:]...)
			return
		}
	}
	if job, ok := c.has[worker.Id]; ok {
		delete(c.has, worker.Id)
		c.Waiting = append(c.Waiting, job)
	}
}

// assignJobs assigns jobs to idle workers.
func (c *Coordinator) assignJobs(ctx actor.Context) {
	for len(c.idle) > 0 && len(c.Waiting) > 0 {
		worker, job := c.idle[0], c.Waiting[0]
		c.idle, c.Waiting = c.idle[1:], c.Waiting[1:]
		c.has[worker.Id] = job
		sendMessage(ctx, worker, &Do{job})
	}
}

// Worker connects to a Coordinator, does the jobs that it gets, and reconnects whenever the
// connection is lost.
type Worker struct {
	Runtime *rdma.Runtime
	Addr    string // the Coordinator's
	// Work returns how long a job takes.
	Work func(job uint64) time.Duration
}

// done and redial are messages of a Worker to itself.
type done struct {
	coordinator *actor.PID
	job         uint64
}

type redial struct{}

// Receive implements actor.Actor.
func (w *Worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started, redial:
		ctx.Request(w.Runtime.CreateID(ctx.Self()), &rdma.Dial{Addr: w.Addr})
	case *rdma.Received:
		w.handleReceived(ctx, m)
	case done:
		sendMessage(ctx, m.coordinator, &Done{m.job})
	case *rdma.Closed:
		rdma.After(ctx, time.Second, redial{})
	}
}

// handleReceived starts a job. It disconnects a peer that is not a Coordinator: Closed follows.
func (w *Worker) handleReceived(ctx actor.Context, m *rdma.Received) {
	msg, err := messages.Unmarshal(m.Data)
	do, ok := msg.(*Do)
	if err != nil || !ok {
		ctx.Respond(&rdma.DestroyID{})
		return
	}
	rdma.After(ctx, w.Work(do.Job), done{ctx.Sender(), do.Job})
}
