package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

const (
	// undecided is the maximum number of messages without a known fate. It is more than the
	// credits, because fates are reported with acknowledgements and in bursts.
	undecided = 64
	// drained is the number of acknowledgements after which a connection is ended in order.
	drained = 1000
)

// talker owns a reconnecting actor, and tracks the fate of each message. The server acknowledges
// each.
type talker struct {
	c        *customer
	self     source
	work     string
	pause    time.Duration
	most     int // bytes of a message
	pid      *actor.PID
	link     *actor.PID
	server   uint64 // of this generation; 0: unknown
	open     map[uint64]bool
	tag      uint64 // the last
	acked    uint64 // last acknowledged one in this generation
	count    int
	draining bool
	closing  bool
	closed   chan struct{}
}

func (c *customer) talk(part uint64, work string, pause time.Duration, most int) *talker {
	t := &talker{
		c: c, self: source{c.number, part}, work: work, pause: pause, most: most, open: make(map[uint64]bool), closed: make(chan struct{}),
	}
	t.pid = c.system.Root.Spawn(actor.PropsFromFunc(t.receive, c.rt.OnLoop()))
	return t
}

func (t *talker) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		t.spawn(ctx)
		rdma.After(ctx, 0, another{})
	case another:
		t.next(ctx)
	case *reconnect.Up:
		t.acked, t.server = 0, binary.BigEndian.Uint64(m.Established.PrivateData)
	case *rdma.Received:
		t.acknowledged(ctx, m)
	case *reconnect.Settled:
		t.settle(m.Fates)
	case *reconnect.Down:
		t.settle(m.Fates)
		if m.Err != nil && m.WasUp {
			t.c.count(t.work, m.Err)
		}
		t.server = 0
	case *reconnect.Refused:
		t.c.fault("%s: message %d: %v", t.work, m.Tag, m)
	case *reconnect.Closed:
		t.over(ctx, m)
	case hangUp:
		t.closing = true
		t.drain(ctx)
	}
}

func (t *talker) spawn(ctx actor.Context) {
	who, err := binary.Append(nil, binary.BigEndian, t.self)
	if err != nil {
		panic(err) // its type cannot be encoded
	}
	t.draining = false
	t.link = reconnect.Spawn(t.c.rt, ctx.Self(), reconnect.Config{
		Dial: rdma.Dial{Addr: t.c.server.Messages, PrivateData: who, Timeout: t.c.scale.Connect},
		ID:   rdma.IDConfig{MaxMessage: maxMessage}, Backoff: reconnect.Backoff{First: 20 * time.Millisecond, Most: time.Second},
	})
}

func (t *talker) next(ctx actor.Context) {
	if t.closing {
		return
	}
	rdma.After(ctx, rand.N(2*t.pause), another{})
	if t.draining || len(t.open) >= undecided {
		return
	}
	t.tag++
	n := note{Tag: t.tag, Idempotent: t.tag%3 == 0}
	s := reconnect.NewSend(n.Tag, n.pack(t.self, rand.N(t.most)))
	s.Idempotent = n.Idempotent
	t.open[n.Tag] = n.Idempotent
	ctx.Send(t.link, s)
}

func (t *talker) acknowledged(ctx actor.Context, m *rdma.Received) {
	n, err := unpackNote(t.self, m.Data)
	switch {
	case err != nil:
		t.c.fault("%s: %v", t.work, err)
	case n.Tag <= t.acked || n.Tag > t.tag:
		t.c.fault("%s: the acknowledgement of message %d comes behind that of %d, on one connection", t.work, n.Tag, t.acked)
	}
	t.acked = n.Tag
	t.c.count(t.work, nil)
	if t.count++; t.count%drained == 0 {
		t.drain(ctx)
	}
}

// drain ends the link in order.
func (t *talker) drain(ctx actor.Context) {
	if !t.draining {
		t.draining = true
		ctx.Send(t.link, &reconnect.Drain{Timeout: patience})
	}
}

// settle handles reported fates of messages.
func (t *talker) settle(all []reconnect.Fate) {
	came := fates{Client: t.self.Client, Part: t.self.Part, Server: t.server, Came: true}
	not := came
	not.Came = false
	for _, f := range all {
		idempotent, open := t.open[f.Tag]
		switch {
		case !open:
			t.c.fault("%s: message %d has two fates: %+v", t.work, f.Tag, f)
		case f.Again && f.Outcome == reconnect.Unknown && !idempotent:
			t.c.fault("%s: message %d may have arrived, and is sent again: %+v", t.work, f.Tag, f)
		}
		if f.Again {
			continue
		}
		delete(t.open, f.Tag)
		switch f.Outcome {
		case reconnect.Delivered:
			t.audit(&came, f.Tag)
		case reconnect.Unsent:
			t.audit(&not, f.Tag)
		}
	}
	t.send(&came)
	t.send(&not)
}

func (t *talker) audit(f *fates, tag uint64) {
	if int(f.N) == len(f.Tags) {
		t.send(f)
	}
	f.Tags[f.N] = tag
	f.N++
}

func (t *talker) send(f *fates) {
	if f.N > 0 && f.Server != 0 {
		select {
		case t.c.audits <- *f:
		default: // without a connection they cannot be compared
		}
	}
	f.N = 0
}

// over handles the end of a link.
func (t *talker) over(ctx actor.Context, m *reconnect.Closed) {
	t.settle(m.Fates)
	if len(t.open) > 0 {
		t.c.fault("%s: %d messages have no fate at the end (%v)", t.work, len(t.open), m.Err)
		clear(t.open)
	}
	switch {
	case t.closing:
		close(t.closed)
		ctx.Stop(ctx.Self())
	default:
		if !t.draining {
			t.c.fault("%s: the reconnecting actor has ended: %v", t.work, m.Err)
		}
		t.spawn(ctx)
	}
}

// close ends the talker's work.
func (t *talker) close() {
	t.c.system.Root.Send(t.pid, hangUp{})
	t.c.wait(fmt.Sprintf("%v of %v", t.work, t.self), t.closed)
}
