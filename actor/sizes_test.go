package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
)

// A queue as NVMe's: one side sends commands with data in them, the other answers of 16 bytes. The
// sizes and numbers of a side's receives are independent of those of its sends, with a hello and
// without.
func TestReceivesAreApartFromSends(t *testing.T) {
	const command, depth = 5 << 10, 256
	for name, x := range map[string]struct {
		host, target IDConfig
	}{
		"messages": {
			host:   IDConfig{MaxMessage: 1 << 10, Credits: depth, Sends: 20},
			target: IDConfig{MaxMessage: command, Credits: depth},
		},
		"raw": {
			host:   IDConfig{Raw: true, MaxMessage: 1 << 10, MaxSend: command, Credits: depth, Sends: 20},
			target: IDConfig{Raw: true, MaxMessage: command, MaxSend: 16, Credits: depth},
		},
		"a foreign target": {
			host:   IDConfig{MaxMessage: 1 << 10, MaxSend: command, Credits: depth, Sends: 20},
			target: IDConfig{Raw: true, MaxMessage: command, MaxSend: 16, Credits: depth},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
				p := pair{client: w.probe(), server: w.farProbe()}
				w.listen(p.server, x.target)
				p.c = w.rt.CreateID(p.client.pid, x.host)
				p.client.send(p.c, &Dial{Addr: there + ":7471"})
				_, p.s = next[*ConnectRequest](p.server)
				p.server.send(p.s, &Accept{})
				next[*Established](p.server)
				if e, _ := next[*Established](p.client); e.MaxMessage != command {
					w.Errorf("the host may send %d bytes, want %d", e.MaxMessage, command)
				}
				p.server.reactWith(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*Received); ok {
						ctx.Respond(NewSend(make([]byte, 16)))
					}
				})
				for range 3 * depth {
					p.client.send(p.c, NewSend(make([]byte, command)))
					next[*Received](p.server)
					if g := p.client.any(); len(g.data) != 16 {
						w.Fatalf("the answer is %v", g)
					}
				}
				p.client.send(p.c, NewSend(make([]byte, command+1)))
				f, _ := next[*SendFailed](p.client)
				is(w, f, unix.EMSGSIZE)
				used := func(rt *Runtime) (n int) {
					w.onLoop(rt, func(l *loop) { n = rt.cfg.Limits.ReceiveMemory - l.RecvBudget.Free })
					return n
				}
				if host, target := used(w.rt), used(w.far); host > 2*depth<<10 || target < depth*command {
					w.Errorf("the host has %d bytes of receives, the target %d", host, target)
				}
				w.onLoop(w.rt, func(l *loop) {
					if n := w.conn(l, p.c).Out.Flight.Depth; n != 20 {
						w.Errorf("the host has room for %d sends", n)
					}
				})
			})
		})
	}
}

// On the embedded device MaxSend counts, too, and Sends does not.
func TestMaxSendOnTheEmbeddedDevice(t *testing.T) {
	rt := openIWARP(t, testSystem(t))
	server, client := newProbe(t, rt.sys, rt.OnLoop(), nil), newProbe(t, rt.sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, "127.0.0.1:0", IDConfig{Raw: true, MaxMessage: 5 << 10, MaxSend: 16})
	c := rt.CreateID(client.pid, IDConfig{Raw: true, MaxMessage: 1 << 10, MaxSend: 5 << 10, Sends: 1})
	client.send(c, &Dial{Addr: at})
	_, s := next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	next[*Established](client)
	for range 3 * datapath.SendDepth {
		client.send(c, NewSend(make([]byte, 5<<10)))
	}
	for range 3 * datapath.SendDepth {
		next[*Received](server)
	}
	server.send(s, NewSend(make([]byte, 17)))
	f, _ := next[*SendFailed](server)
	is(t, f, ErrTooLarge)
	if !contains(f.Error(), "at most 16 can be sent (IDConfig.MaxSend)") {
		t.Errorf("it does not name the field to change: %v", f)
	}
	client.send(c, &Close{})
	until[*Closed](client)
	until[*Closed](server)
}
