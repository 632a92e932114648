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
