package beside

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/remoting"
)

func init() {
	programs["a node that lost its power comes back"] = powerLost
	programs["an answer comes long after an interruption"] = interrupted
}

// An actor takes three times Patience to answer another one. The connection is reset once during
// that time.
func interrupted(t *testing.T, r transport) outcome {
	o := options{patience: time.Second, cuttable: true}
	a, b := r.start(t, o), r.start(t, o)
	began, answer := make(chan bool, 1), make(chan bool)
	b.spawn("worker", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			began <- true
			<-answer
			ctx.Respond(wrapperspb.String("done"))
		}
	})
	heard := make(chan any, 16)
	a.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(b.pid("worker"), wrapperspb.String("?"))
		case *wrapperspb.StringValue, *remoting.Refused, *remoting.Unknown:
			heard <- m
		}
	}))
	a.sys.EventStream.Subscribe(func(ev any) {
		if no, ok := ev.(*remoting.Refused); ok {
			heard <- no
		}
	})
	<-began
	if a.way.cut()+b.way.cut() == 0 {
		t.Fatal("there is no connection")
	}
	time.Sleep(3 * o.patience)
	close(answer)
	select {
	case m := <-heard:
		if _, ok := m.(*wrapperspb.StringValue); ok {
			return outcome{good: 1, of: 1}
		}
		return outcome{of: 1, note: fmt.Sprint(m)}
	case <-time.After(still):
		return outcome{of: 1, note: "nothing comes"}
	}
}

// A node loses its power, which the other one does not notice, and comes back with its name.
func powerLost(t *testing.T, r transport) outcome {
	a, b := r.start(t, options{cuttable: true}), r.start(t, options{cuttable: true})
	a.spawn("echo", echo)
	b.spawn("echo", echo)
	if _, err := a.ask(b.pid("echo"), "x", soon); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ask(a.pid("echo"), "x", soon); err != nil {
		t.Fatal(err)
	}
	listen := proctest.FreeAddrs(t, 1)[0]
	a.way.lose(a.way.to)
	b.way.lose(listen)
	again := r.start(t, options{name: b.name, listen: listen})
	again.spawn("echo", echo)
	defer b.way.cut() // the rest of the lost process can shut down
	defer a.way.cut()
	o := outcome{of: 2}
	got, err := again.ask(a.pid("echo"), "x", briefly)
	if got == "x" {
		o.good++
	}
	got, bad := a.ask(again.pid("echo"), "x", briefly)
	if got == "x" {
		o.good++
	}
	o.note = fmt.Sprint(err, "; ", bad)
	return o
}
