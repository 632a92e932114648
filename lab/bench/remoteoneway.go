package main

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// typedFlow sends typed messages in one direction. The receiving actor answers each batch with the
// number of messages that have arrived so far.
type typedFlow struct {
	Size, Batch int
	// Window bounds the unanswered messages. 0: no bound.
	Window int
}

const drainName = "drain"

// accepted is the rate at which the sender sends, whether or not messages arrive.
const accepted = "accepted/s"

// serve implements Scenario.Serve.
func (f typedFlow) serve(e measure.Entry) (measure.Service, error) {
	var reader *actor.PID // of the answers
	got := 0
	return openNode(e, drainName, func(ctx actor.Context) {
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

// flowClient sends from a goroutine, and has an actor for the answers.
type flowClient struct {
	typedFlow
	node
	to, reader *actor.PID
	answers    chan int // numbers of messages that have arrived
}

// dial implements Scenario.Dial.
func (f typedFlow) dial(addr string, e measure.Entry) (measure.Client, error) {
	const room = 1 << 16 // for answers that are not yet read
	n, err := openNode(e, "", nil)
	if err != nil {
		return nil, err
	}
	c := &flowClient{typedFlow: f, node: n, to: actor.NewPID(addr, drainName), answers: make(chan int, room)}
	c.reader = n.System().Root.Spawn(n.Props(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
			c.answers <- int(m.GetValue())
		}
	}))
	return c, nil
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

// Run implements measure.Client.
func (c *flowClient) Run(d time.Duration) (measure.Sample, error) {
	root := c.System().Root
	root.RequestWithCustomSender(c.to, wrapperspb.Bool(true), c.reader)
	if got := <-c.answers; got != 0 {
		return measure.Sample{}, fmt.Errorf("%d messages arrived before the first", got)
	}
	m := wrapperspb.Bytes(contest.NewPayload(c.Size))
	begun := time.Now()
	sent, arrived := 0, 0
	var err error
	for err == nil && time.Since(begun) < d {
		for range c.Batch {
			root.Send(c.to, m)
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
