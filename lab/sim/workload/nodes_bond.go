package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// bond is a reconnecting actor and its owner, which is an actor on the loop whose turn it is.
type bond struct {
	me     *node
	of     pair
	self   *actor.PID // the owner
	pid    *actor.PID
	ledger *oracle.Link
	from   *oracle.Arrivals // over the present connection
	up     *reconnect.Up    // nil: it is down
	posts  bool             // it keeps its messages itself
	line   []*parcelOp      // of these, those that wait
	first  *reconnect.Send  // the one that did not go out; nil: none
	tag    uint64           // its
	posted int              // in this generation
	named  bool             // the other machine's address is known
	calls  int              // what was asked to end it
	over   bool
}

// bond starts a reconnecting actor. named: it knows where the other machine is.
func (me *node) bond(p pair, o *linkOp, named bool) *bond {
	w := me.w
	name := fmt.Sprintf("machine %d's %dth connection to machine %d", p.from, w.starts, p.to)
	k := &bond{me: me, of: p, ledger: w.ledger.Link(name), posts: o.posts, named: named}
	cfg := w.cfg
	cfg.Rand = rand.New(rand.NewPCG(uint64(p.from), uint64(p.to)))
	if named {
		cfg.Dial.Addr = k.address(o)
	}
	if o.resolve {
		cfg.Resolve = me.resolve
	}
	if o.peers {
		cfg.Peers, cfg.Peer = me.peers, uint64(p.to)
	}
	k.self = me.p.System().Root.Spawn(actor.PropsFromFunc(k.receive, me.rt.OnLoop()))
	k.pid = reconnect.Spawn(me.rt, k.self, cfg)
	me.links = append(me.links, k)
	return k
}

// address is what the other machine is called.
func (k *bond) address(o *linkOp) string {
	if o.resolve {
		return fmt.Sprintf("machine %d", k.of.to)
	}
	return k.me.w.Addr(k.of.to, 0)
}

var errNoName = errors.New("the name service is not there")

// resolve is a name service, which takes its time, and sometimes says nothing.
func (me *node) resolve(ctx context.Context, name string) (string, error) {
	r := me.p.Rand()
	if r.IntN(2) == 0 {
		me.p.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
	}
	var machine int
	if _, err := fmt.Sscanf(name, "machine %d", &machine); err != nil {
		return "", err
	}
	if _, calm := me.w.Calm(); !calm && r.IntN(8) == 0 || ctx.Err() != nil {
		return "", errNoName
	}
	return me.w.Addr(machine, 0), nil
}

// receive is the owner.
func (k *bond) receive(ctx actor.Context) {
	now := k.me.w.World.Now()
	switch m := ctx.Message().(type) {
	case *doParcels:
		k.send(ctx, m.o)
	case *doCut:
		k.cut(ctx, m.o)
	case *doEnd:
		if !k.over {
			k.calls++
			ctx.Send(k.pid, &reconnect.Drain{Timeout: 20 * time.Second})
		}
	case *rdma.Received:
		k.ledger.Got(now)
		if k.up != nil {
			k.from.Received(now, m.Data)
			if n, ok := k.up.Unsettled(); ok && k.posts && n > k.posted {
				k.me.w.fail("%v: %d messages are not settled, and %d were posted", k.of, n, k.posted)
			}
		}
	case *rdma.Writable:
		k.post()
	case *actor.DeadLetterResponse:
		k.ledger.Late()
	default:
		k.report(ctx, now, m)
	}
}

// send sends messages.
func (k *bond) send(ctx actor.Context, o *parcelOp) {
	if k.over {
		return
	}
	for range o.n {
		if k.posts {
			k.line = append(k.line, o)
			continue
		}
		tag, p := k.ledger.Submit(o.size, !o.plain, o.idempotent && !o.plain)
		if o.plain {
			ctx.Request(k.pid, rdma.NewSend(p))
			continue
		}
		s := reconnect.NewSend(tag, p)
		s.Idempotent = o.idempotent
		ctx.Request(k.pid, s)
	}
	k.post()
}

// post posts the messages that wait here, as long as they go out.
func (k *bond) post() {
	now := k.me.w.World.Now()
	for k.up != nil && len(k.line) > 0 {
		if k.first == nil {
			var p []byte
			plain := k.line[0].plain
			k.tag, p = k.ledger.Submit(k.line[0].size, !plain, false)
			k.first = reconnect.NewSend(k.tag, p)
			k.first.Quiet = plain
		}
		err := k.up.Post(k.first)
		switch {
		case errors.Is(err, reconnect.ErrQueueFull) || errors.Is(err, reconnect.ErrDown):
			return
		case err != nil:
			k.ledger.Refused(now, k.tag)
		default:
			k.posted++
		}
		k.first, k.line = nil, k.line[1:]
	}
}

// cut ends something.
func (k *bond) cut(ctx actor.Context, o *cutOp) {
	if k.over {
		return
	}
	if o.how == cutBreak {
		if k.up != nil {
			ctx.Send(k.pid, &reconnect.Break{Generation: k.up.Generation, Err: errBroken})
		}
		return
	}
	k.calls++
	switch o.how {
	case cutClose:
		ctx.Send(k.pid, &rdma.Close{})
	case cutDrain:
		ctx.Send(k.pid, &reconnect.Drain{})
	default:
		ctx.Send(k.pid, &rdma.DestroyID{})
	}
}

var errBroken = errors.New("the owner has broken it off")

// report takes what a reconnecting actor reports.
func (k *bond) report(ctx actor.Context, now time.Duration, m any) {
	w := k.me.w
	switch m := m.(type) {
	case *reconnect.Up:
		k.up, k.from, k.posted = m, w.ledger.Arrivals(), 0
		k.ledger.Up(now, m.Generation)
		if o := w.kept[pair{k.of.to, k.of.from}]; !k.named && w.naming && o != nil {
			k.named = true
			ctx.Send(k.pid, &reconnect.Address{Addr: k.address(o)})
		}
		if o := w.kept[k.of]; (o == nil || o.peers) && m.Node != uint64(k.of.to) {
			w.fail("%v: node %d has answered", k.of, m.Node)
		}
		k.post()
	case *reconnect.Settled:
		k.fates(now, m.Fates)
	case *reconnect.Down:
		k.fates(now, m.Fates)
		k.up = nil
		k.ledger.Down(now, m.Generation, m.WasUp)
		if m.NextTry.IsZero() && k.calls == 0 && !k.mayEnd() {
			w.fail("%v: a connection is given up: %v", k.of, m.Err)
		}
	case *reconnect.Refused:
		k.ledger.Refused(now, m.Tag)
	case *reconnect.Closed:
		if k.first != nil {
			k.ledger.Refused(now, k.tag) // it has never gone out
		}
		k.fates(now, m.Fates)
		k.over = true
		k.ledger.Closed(now, m.Counts.Delivered+m.Counts.Unsent+m.Counts.Unknown)
		if k.calls == 0 && !k.mayEnd() {
			w.fail("%v: a connection ends by itself: %v", k.of, m.Err)
		}
	}
}

// mayEnd reports whether the reconnecting actor may end by itself: a fault has hit it, or it does
// not know where the other machine is.
func (k *bond) mayEnd() bool { return !k.named || k.me.w.Disturbed(k.of.from, k.of.to) }

func (k *bond) fates(now time.Duration, all []reconnect.Fate) {
	for _, f := range all {
		o := map[reconnect.Outcome]oracle.Outcome{
			reconnect.Delivered: oracle.WasDelivered, reconnect.Unsent: oracle.WasUnsent, reconnect.Unknown: oracle.WasUnknown,
		}[f.Outcome]
		k.ledger.Fate(now, f.Tag, o, f.Again)
	}
}
