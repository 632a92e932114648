package actor

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// isEchoed checks that what client sends is answered before any time passes.
func (w *world) isEchoed(client *probe, id *actor.PID, text string) {
	w.Helper()
	client.send(id, NewSend([]byte(text)))
	settle()
	select {
	case g := <-client.got:
		if g.data != text {
			w.Errorf("the answer to %q is %v", text, g)
		}
	default:
		w.Errorf("%q is not answered", text)
	}
}

// However many peers without a hello connect, and make the owner retain a large message each, there
// is a receive for every connection. When there are too many, peers that cannot be asked for
// smaller messages are rejected.
func TestCrowdOfForeignPeers(t *testing.T) {
	const peers = 40
	for name, opts := range map[string]IDConfig{"foreign": {}, "raw": {Raw: true}} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				var over atomic.Bool
				server, client := w.farProbe(), w.probe()
				server.reactWith(func(ctx actor.Context) {
					switch m := ctx.Message().(type) {
					case *ConnectRequest:
						ctx.Respond(&Accept{})
					case *Received:
						if m.Data[0] != greedy {
							ctx.Respond(NewSend(m.Data))
						} else if !over.Load() {
							keep(w, m)
						}
					}
				})
				w.listen(server)
				good := w.rt.CreateID(client.pid, IDConfig{})
				client.send(good, &Dial{Addr: there + ":7471"})
				next[*Established](client)
				crowd, _ := listen(w.probe(), w.far, there+":7472", opts)
				w.sys.Root.Send(crowd, &Handover{To: server.pid})
				settle()
				came, rejected := 0, 0
				for range peers {
					p := w.probe()
					id := w.rt.CreateID(p.pid, IDConfig{Raw: true})
					p.send(id, &Dial{Addr: there + ":7472"})
					switch m := p.any().msg.(type) {
					case *Established:
						came++
						for range 3 {
							p.send(id, NewSend([]byte(strings.Repeat(string(rune(greedy)), 64<<10))))
						}
					case Failure:
						rejected++
						is(w, m, unix.ECONNREFUSED)
					}
				}
				settle()
				if n := w.info(w.far, crowd).Listener; n.Requests != peers || n.Refused.Memory != uint64(rejected) {
					w.Errorf("counted %+v", n)
				}
				if came == 0 || rejected == 0 {
					w.Errorf("%d peers came in and %d were rejected, want some of each", came, rejected)
				}
				w.isEchoed(client, good, "hello")
				over.Store(true)
			}, Config{Limits: Limits{ReceiveMemory: 2 << 20}})
		})
	}
}

// Peers leave a message, go, and come back, again and again, to an owner that retains them all: in
// the end they are rejected, and there is a receive for every existing connection.
func TestCrowdOfThoseWhoHaveGone(t *testing.T) {
	for name, size := range map[string]int{"large": 60 << 10, "small": 1} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				var kept []*Received
				over := false
				server, client := w.farProbe(), w.probe()
				w.listen(server)
				server.reactWith(func(ctx actor.Context) {
					<-server.got // it is not looked at
					switch m := ctx.Message().(type) {
					case *ConnectRequest:
						ctx.Respond(&Accept{})
					case *Received:
						if m.Data[0] != greedy {
							ctx.Respond(NewSend(m.Data))
						} else if !over {
							kept = append(kept, m.Retain())
						}
					}
				})
				good := w.rt.CreateID(client.pid, IDConfig{})
				client.send(good, &Dial{Addr: there + ":7471"})
				next[*Established](client)
				p := w.probe()
				rejected := false
				for n := 0; !rejected; n++ {
					if n == 5000 {
						w.Fatal("nobody is rejected")
					}
					id := w.rt.CreateID(p.pid, IDConfig{})
					p.send(id, &Dial{Addr: there + ":7471"})
					switch m := p.any().msg.(type) {
					case *Established:
						for range 30 {
							p.send(id, NewSend([]byte(strings.Repeat(string(rune(greedy)), size))))
						}
						time.Sleep(time.Second) // they are on their way
						p.send(id, &DestroyID{})
					case Failure:
						is(w, m, unix.ECONNREFUSED)
						rejected = true
					}
					until[*Closed](p)
				}
				w.isEchoed(client, good, "hello")
				w.onLoop(w.far, func(*loop) {
					over = true
					for _, m := range kept {
						m.Release()
					}
				})
				settle()
				id := w.rt.CreateID(p.pid, IDConfig{})
				p.send(id, &Dial{Addr: there + ":7471"})
				next[*Established](p)
				w.onLoop(w.far, func(l *loop) {
					if s := &l.Shares; s.Owed != s.Floor || s.Held != 0 {
						w.Errorf("%d bytes are owed to connections that want %d, and %d are kept", s.Owed, s.Floor, s.Held)
					}
				})
			}, Config{Limits: Limits{ReceiveMemory: 2 << 20}})
		})
	}
}
