package actor

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

func TestInspect(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 2 << 10, Credits: 8})
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m)
			}
		})
		for range 3 {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		time.Sleep(time.Hour)
		waiting := w.rt.CreateID(p.client.pid, IDConfig{})
		p.client.send(waiting, &cmid.ResolveAddr{Dst: MustAddr("10.0.0.66:1")})
		settle()
		infos := w.rt.Inspect()
		if len(infos) != 2 {
			w.Fatalf("%+v", infos)
		}
		c := infos[0]
		if c.State != states.Connected || c.InState < time.Hour || !c.Owner.Equal(p.client.pid) || c.Device != "mem0" ||
			c.Peer != MustAddr(there+":7471") || c.Wire != "messages" || c.Credits.Unacked != 3 || c.Credits.Send != 5 {
			w.Errorf("the connection: %+v", c)
		}
		if h := c.History; len(h) == 0 || h[len(h)-1].State != states.Connected {
			w.Errorf("its history: %v", h)
		}
		if i := infos[1]; i.Waiting != "resolve_addr" || i.State != states.AddrQuery || !i.PID.Equal(waiting) {
			w.Errorf("the one that resolves: %+v", i)
		}
		for _, i := range w.far.Inspect() {
			if i.PID.Equal(p.s) && (i.Credits.Unfreed != 3 || i.Credits.Receive != 5) {
				w.Errorf("the peer: %+v", i)
			}
		}
		onLoop := make(chan []IDInfo, 1)
		_ = w.rt.loops[0].el.Post(func() { onLoop <- w.rt.Inspect() })
		if got := <-onLoop; len(got) != 2 {
			w.Errorf("on the loop: %+v", got)
		}
	})
}

// observer writes down what two runtimes report.
type observer struct {
	mu   sync.Mutex
	seen map[string]int
}

func (o *observer) saw(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[what]++
}

func (o *observer) Transition(_ *actor.PID, _ Handle, from, to states.State) {
	o.saw(fmt.Sprintf("%v -> %v", from, to))
}
func (o *observer) Event(_ *actor.PID, ev cmid.Event)      { o.saw(fmt.Sprintf("%T", ev)) }
func (*observer) Moved(*actor.PID, Handle, string, string) {}

func (o *observer) Credit(_ *actor.PID, _ Handle, c Credits) {
	o.saw(fmt.Sprintf("unacked %d", c.Unacked))
}

func TestObserver(t *testing.T) {
	o := &observer{seen: make(map[string]int)}
	inWorld(t, 0, func(w *world) {
		p := w.connect()
		p.client.send(p.c, NewSend([]byte("x")))
		next[*Received](p.server)
		p.client.send(p.c, &Close{})
		until[*Closed](p.client)
		until[*Closed](p.server)
	}, Config{Observer: o, Loops: make([]eventloop.Config, 1)})
	for what, n := range map[string]int{
		"*cmid.ConnectRequest": 1, "*cmid.Established": 2, "*actor.Received": 1, "*cmid.Closed": 3, "idle -> addr-query": 1,
		"connecting -> connected": 1, "unacked 1": 1,
	} {
		if o.seen[what] < n {
			t.Errorf("%s was seen %d times, want %d: %v", what, o.seen[what], n, o.seen)
		}
	}
}

// commander is an observer of commands, too.
type commander struct {
	observer
	underWay map[Command]bool
}

func (o *commander) Begun(_ *actor.PID, _ Handle, cmd Command) {
	o.saw("begun " + cmd.Op().String())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.underWay[cmd] = true
}

func (o *commander) Answered(_ *actor.PID, _ Handle, cmd Command, ev cmid.Event) {
	o.mu.Lock()
	begun := o.underWay[cmd]
	delete(o.underWay, cmd)
	o.mu.Unlock()
	if begun {
		o.saw(fmt.Sprintf("%v: %T", cmd.Op(), ev))
	}
}

// A CommandObserver is notified of the commands that a Dial and an Accept are made of, and of each
// answer, with the value that it has been notified of before.
func TestCommandObserver(t *testing.T) {
	o := &commander{observer{seen: make(map[string]int)}, make(map[Command]bool)}
	inWorld(t, 0, func(w *world) {
		p := w.connect()
		refused := w.rt.CreateID(p.client.pid, IDConfig{})
		p.client.send(refused, &cmid.Listen{Backlog: -1})
		p.client.send(refused, &cmid.Accept{})
		until[*CommandFailed](p.client)
		p.client.send(refused, &DestroyID{})
		p.client.send(p.c, &Close{})
		until[*Closed](p.client)
	}, Config{Observer: o, Loops: make([]eventloop.Config, 1)})
	for _, what := range []string{
		"ResolveAddr: *cmid.AddrResolved", "ResolveRoute: *cmid.RouteResolved", "Connect: *cmid.Established",
		"Accept: *cmid.Established", "Accept: *cmid.CommandFailed", "begun Disconnect",
	} {
		if o.seen[what] == 0 {
			t.Errorf("%s was not seen: %v", what, o.seen)
		}
	}
	for cmd := range o.underWay {
		if op := cmd.Op(); op != states.OpDisconnect && op != states.OpDestroyID {
			t.Errorf("%v has no answer", op)
		}
	}
}
