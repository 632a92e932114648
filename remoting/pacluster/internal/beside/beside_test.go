package beside

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/remoting"
)

// The programs wait most of the time, so many of them run at a time.
func TestMain(m *testing.M) {
	flag.Parse()
	net.DefaultResolver = resolver()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(leak.Settled{M: m}, // Proto.Actor's remote leaves its gRPC clients
		goleak.IgnoreAnyFunction("google.golang.org/grpc.(*addrConn).resetTransportAndUnlock"),
		goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"))
}

// outcome counts the successes of a program, and the attempts.
type outcome struct {
	good, of int
	note     string // a remark for the log
}

// program is what runs on both.
type program func(t *testing.T, r transport) outcome

var programs = map[string]program{
	"a slow actor gets every message":               slowActor,
	"what was confirmed outlives its sender":        confirmed,
	"a slow target stops no requests to others":     slowTarget,
	"more askers than a table once had":             manyAskers,
	"only who was asked answers":                    guesses,
	"a request to nobody fails at once":             nobody,
	"a request to a node that is not there fails":   nowhere,
	"a request fails when its link is lost":         lostRequest,
	"who watches nobody hears that":                 watchNobody,
	"who watches hears that the link is lost":       watchLost,
	"a message that cannot be encoded is reported":  unencodable,
	"messages arrive in order, each once":           inOrder,
	"a message may be changed after it was sent":    changedLater,
	"a burst of 12 MiB arrives":                     burst,
	"a node is found behind a silent address":       silentFirst,
	"a forwarded request is answered by who has it": forwarded,
}

func TestBeside(t *testing.T) {
	for name, run := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(map[string]outcome)
			for _, r := range transports() {
				t.Run(r.name, func(t *testing.T) { got[r.name] = run(t, r) })
			}
			ours, theirs := got["remoting"], got["protoactor"]
			t.Logf("remoting: %+v; Proto.Actor's remote: %+v", ours, theirs)
			if ours.good < ours.of {
				t.Errorf("%d of %d: %s", ours.good, ours.of, ours.note)
			}
			if ours.good < theirs.good {
				t.Errorf("Proto.Actor's remote does more: %d, not %d", theirs.good, ours.good)
			}
		})
	}
}

// large returns a message of 10 KiB.
func large() *wrapperspb.BytesValue { return wrapperspb.Bytes(make([]byte, 10<<10)) }

// slow spawns an actor that takes so long for each message, and counts them.
func (n *node) slow(name string, pause time.Duration) *atomic.Int64 {
	n.t.Helper()
	var got atomic.Int64
	n.spawn(name, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			select {
			case <-time.After(pause):
			case <-n.t.Context().Done(): // the rest of its mailbox takes no time
			}
			got.Add(1)
		}
	})
	return &got
}

// An actor that consumes all the time, but in Patience less than a quarter of the bytes that may
// wait for it.
func slowActor(t *testing.T, r transport) outcome {
	const n = 1200
	o := options{patience: time.Second}
	a, b := r.start(t, o), r.start(t, o)
	got := b.slow("slow", 10*time.Millisecond)
	for range n {
		a.sys.Root.Send(b.pid("slow"), large())
	}
	return outcome{good: settles(n, func() int { return int(got.Load()) }), of: n}
}

// Proto.Actor's remote sends up to a thousand messages at a time, which gRPC refuses if they are
// larger than 4 MiB and the limit was not raised.
func burst(t *testing.T, r transport) outcome {
	const n = 1200
	a, b := r.start(t, options{}), r.start(t, options{stock: true})
	got := b.slow("in", 0)
	for range n {
		a.sys.Root.Send(b.pid("in"), large())
	}
	return outcome{good: settles(n, func() int { return int(got.Load()) }), of: n}
}

// 4 MiB for a slow actor, and their sender shuts down. All that it has not reported as lost
// arrives.
func confirmed(t *testing.T, r transport) outcome {
	const n = 400
	o := options{patience: time.Second}
	a, b := r.start(t, o), r.start(t, o)
	got := b.slow("slow", 10*time.Millisecond)
	var unknown atomic.Int64
	a.sys.EventStream.Subscribe(func(ev any) {
		if d, ok := ev.(*remoting.Disconnected); ok {
			unknown.Add(int64(d.Unknown + d.Unsent))
		}
	})
	for range n {
		a.sys.Root.Send(b.pid("slow"), large())
	}
	err := a.shutdown()
	if lost := unknown.Load(); (lost != 0) != (err != nil) {
		t.Errorf("%d messages are not known to have arrived, and Shutdown returned %v", lost, err)
	}
	want := n - int(unknown.Load())
	return outcome{settles(want, func() int { return int(got.Load()) }), want, fmt.Sprint(n, " sent; Shutdown: ", err)}
}

// One target is sent much more than it takes; twelve others of its node are asked.
func slowTarget(t *testing.T, r transport) outcome {
	a, b := r.start(t, options{}), r.start(t, options{})
	got := b.slow("slow", 30*time.Millisecond)
	go func() {
		for range 2000 {
			a.sys.Root.Send(b.pid("slow"), large())
		}
	}()
	if settles(1, func() int { return int(min(got.Load(), 1)) }) == 0 {
		t.Fatal("nothing comes")
	}
	o := outcome{of: 12}
	for i := range o.of {
		b.spawn(fmt.Sprint("idle", i), echo)
		if _, err := a.ask(b.pid(fmt.Sprint("idle", i)), "x", soon/2); err == nil {
			o.good++
		} else {
			o.note = err.Error()
		}
	}
	return o
}

// Many actors ask one, which answers when it has all requests.
func manyAskers(t *testing.T, r transport) outcome {
	const n = 40_000
	a, b := r.start(t, options{}), r.start(t, options{})
	var came, answered, refused atomic.Int64
	var askers []*actor.PID
	b.spawn("answers", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			came.Add(1)
			if askers = append(askers, ctx.Sender()); len(askers) < n {
				return
			}
			for _, to := range askers {
				ctx.Send(to, wrapperspb.String("yes"))
			}
		}
	})
	asker := actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(b.pid("answers"), wrapperspb.String("?"))
		case *wrapperspb.StringValue:
			answered.Add(1)
		case *remoting.Refused:
			refused.Add(1)
		}
	})
	for range n {
		a.sys.Root.Spawn(asker)
	}
	settles(2*n, func() int { return int(came.Load() + answered.Load()) })
	return outcome{int(answered.Load()), n, fmt.Sprint(came.Load(), " came, ", refused.Load(), " refused")}
}

// A node that was asked something before tries to answer what another one is asked.
func guesses(t *testing.T, r transport) outcome {
	a, b, c := r.start(t, options{}), r.start(t, options{}), r.start(t, options{})
	saw := make(chan *actor.PID, 1)
	c.spawn("echo", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			saw <- ctx.Sender()
		}
		echo(ctx)
	})
	asked, answer := make(chan bool), make(chan bool)
	b.spawn("asked", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			asked <- true
			<-answer
			ctx.Respond(wrapperspb.String("true"))
		}
	})
	if _, err := a.ask(c.pid("echo"), "x", soon); err != nil {
		t.Fatal(err)
	}
	own := <-saw
	f := a.sys.Root.RequestFuture(b.pid("asked"), wrapperspb.String("?"), soon)
	<-asked
	digits := strings.TrimLeft(own.Id[strings.LastIndexAny(own.Id, "$.#")+1:], " ")
	prefix := strings.TrimSuffix(own.Id, digits)
	for i := range 500 {
		for _, token := range []uint32{own.RequestId, own.RequestId + uint32(i)} {
			c.sys.Root.Send(&actor.PID{Address: a.name, Id: fmt.Sprint(prefix, i), RequestId: token}, wrapperspb.String("forged"))
		}
		// Proto.Actor's numbers have a special base, with these digits
		c.sys.Root.Send(actor.NewPID(a.name, prefix+number(uint64(i))), wrapperspb.String("forged"))
	}
	a.spawn("door", echo)
	_, _ = c.ask(a.pid("door"), "all have come", briefly) // its connection may have been ended
	close(answer)
	got, err := textOf(f)
	o := outcome{of: 1, note: fmt.Sprintf("%q, %v", got, err)}
	if got == "true" {
		o.good = 1
	}
	return o
}

// number returns how Proto.Actor writes the numbers of futures.
func number(n uint64) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz~+"
	text := ""
	for ok := true; ok; ok = n > 0 {
		text = digits[n&0x3f:][:1] + text
		n >>= 6
	}
	return text
}

// fails makes a request that cannot be answered, and expects that the sender learns that early.
func fails(n *node, to *actor.PID, during func()) outcome {
	f := n.sys.Root.RequestFuture(to, wrapperspb.String("?"), briefly)
	during()
	got, err := textOf(f)
	o := outcome{of: 1, note: fmt.Sprintf("%q, %v", got, err)}
	if err != nil && !errors.Is(err, actor.ErrTimeout) {
		o.good = 1
	}
	return o
}

func nobody(t *testing.T, r transport) outcome {
	a, b := r.start(t, options{}), r.start(t, options{})
	return fails(a, b.pid("nobody"), func() {})
}

func nowhere(t *testing.T, r transport) outcome {
	return fails(r.start(t, options{}), actor.NewPID("127.0.0.1:1", "nobody"), func() {})
}

func lostRequest(t *testing.T, r transport) outcome {
	a, b := r.start(t, options{cuttable: true}), r.start(t, options{cuttable: true})
	asked, over := make(chan bool, 1), make(chan bool)
	t.Cleanup(func() { close(over) })
	b.spawn("asked", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			asked <- true
			<-over
		}
	})
	return fails(a, b.pid("asked"), func() {
		<-asked
		a.way.cut()
		b.way.cut()
	})
}

// watches makes an actor watch another one, and counts Terminated with that reason.
func watches(n *node, to *actor.PID, why actor.TerminatedReason, during func()) outcome {
	heard := make(chan actor.TerminatedReason, 16)
	n.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(to)
		case *actor.Terminated:
			heard <- m.Why
		}
	}))
	during()
	select {
	case got := <-heard:
		o := outcome{of: 1, note: got.String()}
		if got == why {
			o.good = 1
		}
		return o
	case <-time.After(briefly):
		return outcome{of: 1, note: "nothing comes"}
	}
}

func watchNobody(t *testing.T, r transport) outcome {
	a, b := r.start(t, options{}), r.start(t, options{})
	return watches(a, b.pid("nobody"), actor.TerminatedReason_NotFound, func() {})
}

func watchLost(t *testing.T, r transport) outcome {
	a, b := r.start(t, options{cuttable: true}), r.start(t, options{cuttable: true})
	b.spawn("echo", echo)
	return watches(a, b.pid("echo"), actor.TerminatedReason_AddressTerminated, func() {
		for range 2 { // the watch has come, with what its watcher sent behind it
			if _, err := a.ask(b.pid("echo"), "x", soon); err != nil {
				t.Error(err)
			}
		}
		a.way.cut()
		b.way.cut()
	})
}

func unencodable(t *testing.T, r transport) outcome {
	a, b := r.start(t, options{}), r.start(t, options{})
	b.spawn("echo", echo)
	_, err := remoting.Result(a.sys.Root.RequestFuture(b.pid("echo"), struct{ No func() }{}, briefly))
	o := outcome{of: 1, note: fmt.Sprint(err)}
	if err != nil && !errors.Is(err, actor.ErrTimeout) {
		o.good = 1
	}
	return o
}

func inOrder(t *testing.T, r transport) outcome {
	const n = 20_000
	a, b := r.start(t, options{}), r.start(t, options{})
	var next, wrong atomic.Int64
	b.spawn("counts", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.Int64Value); ok && !next.CompareAndSwap(m.Value, m.Value+1) {
			wrong.Add(1)
		}
	})
	for i := range int64(n) {
		a.sys.Root.Send(b.pid("counts"), wrapperspb.Int64(i))
	}
	good := settles(n, func() int { return int(next.Load()) })
	return outcome{good - int(wrong.Load()), n, fmt.Sprint(wrong.Load(), " wrong")}
}

// A message is encoded when it is sent, so its sender may use it again.
func changedLater(t *testing.T, r transport) outcome {
	a, b := r.start(t, options{}), r.start(t, options{})
	const n = 100
	var whole, came atomic.Int64
	b.spawn("in", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
			if m.Value == came.Load() {
				whole.Add(1)
			}
			came.Add(1)
		}
	})
	b.spawn("echo", echo)
	if _, err := a.ask(b.pid("echo"), "x", soon); err != nil {
		t.Fatal(err)
	}
	m := wrapperspb.Int64(0)
	for i := range int64(n) {
		m.Value = i
		a.sys.Root.Send(b.pid("in"), m)
	}
	settles(n, func() int { return int(came.Load()) })
	return outcome{good: int(whole.Load()), of: n}
}

func forwarded(t *testing.T, r transport) outcome {
	a, b, c := r.start(t, options{}), r.start(t, options{}), r.start(t, options{})
	c.spawn("echo", echo)
	b.spawn("router", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Forward(c.pid("echo"))
		}
	})
	o := outcome{of: 1}
	got, err := a.ask(b.pid("router"), "x", soon/4)
	if o.note = fmt.Sprint(got, err); got == "x" {
		o.good = 1
	}
	return o
}
