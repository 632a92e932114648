package actor

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A message that its owner forwards, or sends on, is the workers' too. They see the right bytes.
// The memory and the peer's credit go back only when the last worker is finished.
func TestForward(t *testing.T) {
	const credits, n = 16, 500
	hand := map[string]func(ctx actor.Context, m *Received, to *actor.PID){
		"forward": func(ctx actor.Context, _ *Received, to *actor.PID) { ctx.Forward(to) },
		"send":    func(ctx actor.Context, m *Received, to *actor.PID) { ctx.Send(to, m) },
		"request": func(ctx actor.Context, m *Received, to *actor.PID) { ctx.Request(to, m) },
		"retain":  func(ctx actor.Context, m *Received, to *actor.PID) { ctx.Send(to, m.Retain()); m.Release() },
		"batch":   func(ctx actor.Context, m *Received, to *actor.PID) { ctx.Send(to, batch{m}) },
	}
	for name, pass := range hand {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: credits})
				var got, wrong atomic.Int64
				work := func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok {
						for range 2 {
							if len(m.Data) != 900 || binary.BigEndian.Uint64(m.Data) != binary.BigEndian.Uint64(m.Data[892:]) {
								wrong.Add(1)
							}
							if got.Load()%7 == 0 {
								time.Sleep(time.Millisecond)
							}
						}
						got.Add(1)
					}
				}
				off := w.sys.Root.Spawn(actor.PropsFromFunc(work, w.far.OffLoop()))
				on := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok {
						if len(m.Data) != 900 || binary.BigEndian.Uint64(m.Data) != binary.BigEndian.Uint64(m.Data[892:]) {
							wrong.Add(1)
						}
						got.Add(1)
					}
				}, w.far.OnLoop()))
				all := route(w.sys, off, on)
				p.server.reactWith(func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok {
						for _, to := range []*actor.PID{off, on, all} {
							pass(ctx, m, to)
						}
					}
				})
				for i := range n {
					s := NewSendBuffer(900)
					binary.BigEndian.PutUint64(s.Bytes(), uint64(i))
					binary.BigEndian.PutUint64(s.Bytes()[892:], uint64(i))
					p.client.send(p.c, s)
					if i%credits == 0 {
						settle()
					}
				}
				p.client.send(p.c, &Close{Timeout: time.Minute})
				end := until[*Closed](p.client)
				if c := end[len(end)-1].msg.(*Closed); c.Delivered != n {
					w.Errorf("the end: %v", c)
				}
				settle()
				if got.Load() != 4*n || wrong.Load() > 0 {
					w.Errorf("%d of %d came to workers, %d times wrong", got.Load(), 4*n, wrong.Load())
				}
				if h := w.far.Held(); h != 0 {
					w.Errorf("%d messages are still retained", h)
				}
				stop(w, w.sys, off)
				stop(w, w.sys, on)
			}, Config{Limits: Limits{SendQueue: n}})
		})
	}
}

type batch []any

func (b batch) GetMessages() []any { return b }

// routing is a process that hands messages on where they are sent, as Proto.Actor's routers do.
type routing struct {
	sys *actor.ActorSystem
	to  []*actor.PID
}

func route(sys *actor.ActorSystem, to ...*actor.PID) *actor.PID {
	pid, _ := sys.ProcessRegistry.Add(&routing{sys, to}, "routing"+sys.ProcessRegistry.NextID())
	return pid
}

func (r *routing) SendUserMessage(_ *actor.PID, msg any) {
	for _, pid := range r.to {
		r.sys.Root.Send(pid, msg)
	}
}

func (r *routing) SendSystemMessage(*actor.PID, any) {}

func (r *routing) Stop(*actor.PID) {}

// Messages that a stopped worker has not received are released, and so are those that arrive
// afterwards.
func TestForwardToAStoppedWorker(t *testing.T) {
	onFlavors(t, func(w *world) {
		const credits = 4
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: credits})
		entered, leave := make(chan struct{}), make(chan struct{})
		worker := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*Received); ok {
				entered <- struct{}{}
				<-leave
			}
		}, w.far.OffLoop()))
		p.server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*Received); ok {
				ctx.Forward(worker)
			}
		})
		for range 3 * credits {
			p.client.send(p.c, NewSend([]byte("work")))
		}
		<-entered
		settle()
		if n := len(p.server.got); n != credits {
			w.Errorf("%d messages came while the worker holds the first, want %d", n, credits)
		}
		w.sys.Root.Stop(worker)
		close(leave)
		p.client.send(p.c, &Close{Timeout: time.Minute})
		end := until[*Closed](p.client)
		if c := end[len(end)-1].msg.(*Closed); c.Delivered != 3*credits {
			w.Errorf("the end: %v", c)
		}
	})
}

// A clone belongs to the actor that gets it, for as long as that actor likes.
func TestClone(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 2})
		got := make(chan *Received, 100)
		plain := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				got <- m
			}
		}))
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				c := m.Clone()
				ctx.Send(plain, c.Clone().Retain())
				if c.ID != m.ID || string(c.Data) != string(m.Data) {
					w.Errorf("the clone of %v is %v", m, c)
				}
				c.Release()
			}
		})
		for i := range 20 {
			p.client.send(p.c, NewSend(pattern(1000, i)))
		}
		for i := range 20 {
			if m := <-got; string(m.Data) != string(pattern(1000, i)) {
				w.Errorf("clone %d has other bytes", i)
			}
		}
		stop(w, w.sys, plain)
	})
}

// wrapped is a user's message that has one of the peer's in it.
type wrapped struct{ *Received }

// A message is also retained while it waits inside another one that embeds it.
func TestForwardEmbedded(t *testing.T) {
	onFlavors(t, func(w *world) {
		got := make(chan string, 1)
		worker := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*wrapped); ok {
				got <- string(m.Data)
			}
		}, w.far.OnLoop()))
		server := newProbe(w, w.sys, w.far.OnLoop(), func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Received:
				ctx.Send(worker, &wrapped{m})
			}
		})
		w.listen(server)
		client := w.probe()
		c := w.rt.CreateID(client.pid, IDConfig{})
		client.send(c, &Dial{Addr: there + ":7471"})
		next[*Established](client)
		client.send(c, NewSend([]byte("hello")))
		if s := <-got; s != "hello" {
			w.Errorf("who got the message in another one has read %q", s)
		}
		stop(w, w.sys, worker)
	})
}
