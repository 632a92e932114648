package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

func is(err, target error) bool { return errors.Is(err, target) }

// untilClosed reads the owner's messages up to the last.
func (r *rig) untilClosed() (downs []*reconnect.Down, c *reconnect.Closed) {
	r.t.Helper()
	for {
		switch m := actortest.Next[any](r.owner).(type) {
		case *reconnect.Down:
			downs = append(downs, m)
		case *reconnect.Closed:
			r.owner.Silent(time.Minute)
			return downs, m
		}
	}
}

// gone checks that the client has no identifier and no place in the limiter's line.
func (r *rig) gone(l *reconnect.Limiter) {
	r.t.Helper()
	r.Wait()
	if n := len(r.Runtime().Inspect()); n > 0 {
		r.t.Errorf("%d identifiers are left", n)
	}
	if dialling, waiting := l.Inspect(); dialling > 0 || len(waiting) > 0 {
		r.t.Errorf("%d dials under way, %d wait", dialling, len(waiting))
	}
}

// Every cause of an end ends the actor immediately and completely: between two attempts, during a
// dial, and while connected.
func TestEnds(t *testing.T) {
	cause := errors.New("enough")
	for when, before := range map[string]func(r *rig){
		"pausing":   func(r *rig) { actortest.Next[*reconnect.Down](r.owner) },
		"dialling":  func(r *rig) { r.Silence("10.0.0.2"); r.Advance(time.Millisecond) },
		"connected": func(r *rig) { r.serve(); r.accept() },
	} {
		for how, end := range map[string]struct {
			do   func(r *rig, cancel func())
			want error
		}{
			"close":   {func(r *rig, _ func()) { r.owner.Send(r.link, &rdma.Close{}) }, nil},
			"drain":   {func(r *rig, _ func()) { r.owner.Send(r.link, &reconnect.Drain{}) }, nil},
			"destroy": {func(r *rig, _ func()) { r.owner.Send(r.link, &rdma.DestroyID{}) }, nil},
			// as on an identifier, an ampersand may be missing
			"close by value":   {func(r *rig, _ func()) { r.owner.Send(r.link, rdma.Close{}) }, nil},
			"drain by value":   {func(r *rig, _ func()) { r.owner.Send(r.link, reconnect.Drain{}) }, nil},
			"destroy by value": {func(r *rig, _ func()) { r.owner.Send(r.link, rdma.DestroyID{}) }, nil},
			"context":          {func(_ *rig, cancel func()) { cancel() }, cause},
			"stop":             {func(r *rig, _ func()) { r.System().Root.Stop(r.link) }, rdma.ErrStopped},
		} {
			t.Run(how+" while "+when, func(t *testing.T) {
				inRig(t, func(r *rig) {
					ctx, cancel := context.WithCancelCause(context.Background())
					defer cancel(nil)
					l := reconnect.NewLimiter(1, 100)
					if when == "dialling" {
						before(r)
					}
					r.spawn(reconnect.Config{Context: ctx, Limiter: l})
					if when != "dialling" {
						before(r)
					} else {
						r.Wait()
					}
					begin := r.Elapsed()
					end.do(r, func() { cancel(cause) })
					r.Wait()
					if r.Elapsed() != begin {
						t.Error("it takes time")
					}
					if _, c := r.untilClosed(); !is(c.Err, end.want) {
						t.Errorf("%+v, want %v", c, end.want)
					}
					r.gone(l)
				})
			})
		}
	}
}

// It dies with its owner, and takes its connection along.
func TestOwnerDies(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		l := reconnect.NewLimiter(0, 0)
		r.spawn(reconnect.Config{Limiter: l})
		r.accept()
		r.System().Root.Stop(r.owner.PID())
		r.ended()
		r.gone(l)
	})
}

// The actor gives up after so many attempts in a row, or so much time without a connection, also
// during a dial.
func TestGivesUp(t *testing.T) {
	t.Run("attempts", func(t *testing.T) {
		inRig(t, func(r *rig) {
			r.spawn(reconnect.Config{Attempts: 4})
			downs, c := r.untilClosed()
			if len(downs) != 4 || !is(c.Err, reconnect.ErrGaveUp) || !is(c.Err, unix.ECONNREFUSED) || !downs[3].NextTry.IsZero() {
				t.Errorf("%d attempts, %+v", len(downs), c)
			}
		})
	})
	t.Run("time", func(t *testing.T) {
		inRig(t, func(r *rig) {
			r.Silence("10.0.0.2")
			begin := r.Elapsed()
			r.spawn(reconnect.Config{GiveUp: 15 * time.Second})
			for r.Elapsed()-begin < 15*time.Second {
				if _, ok := actortest.Next[any](r.owner).(*reconnect.Closed); ok {
					break
				}
			}
			if took := r.Elapsed() - begin; took != 15*time.Second {
				t.Errorf("gave up after %v", took)
			}
		})
	})
	t.Run("a connection begins anew", func(t *testing.T) {
		inRig(t, func(r *rig) {
			r.serve()
			r.spawn(reconnect.Config{Attempts: 2, GiveUp: time.Hour})
			for range 5 {
				conn, _ := r.accept()
				r.Disconnect(conn)
				r.ended()
			}
			r.finish()
		})
	})
}

// A permanent failure ends the actor, unless the application's Config.Permanent decides otherwise.
func TestVerdict(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		r.spawn(reconnect.Config{})
		actortest.Next[*rdma.ConnectRequest](r.server)
		r.server.Request(r.server.Sender(), &rdma.Reject{}) // busy
		actortest.Next[*rdma.Closed](r.server)
		actortest.Next[*rdma.ConnectRequest](r.server)
		r.server.Request(r.server.Sender(), &rdma.Reject{PrivateData: []byte("go away")})
		actortest.Next[*rdma.Closed](r.server)
		downs, c := r.untilClosed()
		var rejected *rdma.Rejected
		if len(downs) != 2 || !is(c.Err, reconnect.ErrPermanent) || !errors.As(c.Err, &rejected) || string(rejected.PrivateData) != "go away" {
			t.Errorf("%+v, %+v", downs, c)
		}
		r.spawn(reconnect.Config{Permanent: func(rdma.Failure) bool { return false }})
		actortest.Next[*rdma.ConnectRequest](r.server)
		r.server.Request(r.server.Sender(), &rdma.Reject{PrivateData: []byte("go away")})
		actortest.Next[*rdma.Closed](r.server)
		r.accept()
	})
}

// A malformed address is a permanent failure.
func TestOwnMistake(t *testing.T) {
	inRig(t, func(r *rig) {
		r.spawn(reconnect.Config{Dial: rdma.Dial{Addr: "nowhere"}})
		if _, c := r.untilClosed(); !is(c.Err, reconnect.ErrPermanent) || !is(c.Err, unix.EINVAL) {
			t.Errorf("%+v", c)
		}
	})
}

// So it does with an owner that fails while it stops, which Proto.Actor notifies no watcher of.
func TestOwnerFailsWhileItStops(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		bad := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Stopped); ok {
				panic("for the test")
			}
		}, r.Runtime().OnLoop()))
		reconnect.Spawn(r.Runtime(), bad, reconnect.Config{Dial: rdma.Dial{Addr: there}})
		actortest.Next[*rdma.ConnectRequest](r.server)
		r.server.Request(r.server.Sender(), &rdma.Accept{})
		actortest.Next[*rdma.Established](r.server)
		r.ExpectPanic("for the test")
		r.System().Root.Stop(bad)
		r.ended()
	})
}

// When its runtime is shut down the actor ends. An owner that is not on the runtime's loops is
// notified.
func TestShutdown(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		got := make(chan any, 10)
		owner := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *reconnect.Up, *reconnect.Down, *reconnect.Closed:
				got <- m
			}
		}))
		defer func() { _ = r.System().Root.StopFuture(owner).Wait() }()
		client := r.Host("mem2", "10.0.0.3")
		reconnect.Spawn(client, owner, reconnect.Config{Dial: rdma.Dial{Addr: there}})
		actortest.Next[*rdma.ConnectRequest](r.server)
		r.server.Request(r.server.Sender(), &rdma.Accept{})
		actortest.Next[*rdma.Established](r.server)
		if _, ok := (<-got).(*reconnect.Up); !ok {
			t.Error("not up")
		}
		if err := client.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if d, ok := (<-got).(*reconnect.Down); !ok || !d.WasUp {
			t.Errorf("got %+v", d)
		}
		if c, ok := (<-got).(*reconnect.Closed); !ok || !is(c.Err, rdma.ErrShutdown) {
			t.Errorf("got %+v", c)
		}
	})
}

// When its runtime is shut down the actor ends also while it has no identifier, and the owner gets
// Closed.
func TestShutdownInBetween(t *testing.T) {
	for name, cfg := range map[string]reconnect.Config{
		"pausing": {Dial: rdma.Dial{Addr: "10.0.0.2:1"}, Backoff: reconnect.Backoff{First: time.Hour, Most: time.Hour}},
		"waiting": {Peers: reconnect.NewPeers(reconnect.PeersConfig{Node: 1}), Peer: 2, GiveUp: time.Hour},
		"resolving": {Dial: rdma.Dial{Addr: "svc:1", Timeout: time.Hour}, Resolve: func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				client := r.Host("mem2", "10.0.0.3")
				d := newDiary(r.World, client)
				link := reconnect.Spawn(client, d.pid, cfg)
				r.System().Root.Send(link, reconnect.NewSend(7, []byte("x")))
				r.Advance(time.Second)
				if err := client.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				d.read(r.World, func() {
					if d.closed == nil || !is(d.closed.Err, rdma.ErrShutdown) || len(d.settled) == 0 {
						t.Errorf("closed: %+v, fates %v", d.closed, d.settled)
					}
				})
			})
		})
	}
}

// An owner that runs on goroutines gets the same messages, in the same order.
func TestOwnerElsewhere(t *testing.T) {
	for name, where := range map[string]func(rt *rdma.Runtime) []actor.PropsOption{
		"off the loop": func(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OffLoop()} },
		"elsewhere":    func(*rdma.Runtime) []actor.PropsOption { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.serve()
				got := make(chan string, 10)
				owner := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch m := ctx.Message().(type) {
					case *rdma.Received:
						got <- string(m.Data)
					case *reconnect.Up, *reconnect.Down, *reconnect.Closed:
						got <- fmt.Sprintf("%T", m)
					}
				}, where(r.Runtime())...))
				defer func() { _ = r.System().Root.StopFuture(owner).Wait() }()
				link := reconnect.Spawn(r.Runtime(), owner, reconnect.Config{Dial: rdma.Dial{Addr: there}})
				actortest.Next[*rdma.ConnectRequest](r.server)
				conn := r.server.Sender()
				r.server.Request(conn, &rdma.Accept{})
				actortest.Next[*rdma.Established](r.server)
				r.Wait()
				r.server.Request(conn, rdma.NewSend([]byte("late")))
				r.Wait()
				r.server.Send(link, &rdma.Close{})
				for _, want := range []string{"*reconnect.Up", "late", "*reconnect.Down", "*reconnect.Closed"} {
					if got := <-got; got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				}
			})
		})
	}
}

// If the actor gives up while it waits for its turn, the error reports that, although no attempt
// has failed.
func TestGivesUpInTheLine(t *testing.T) {
	inRig(t, func(r *rig) {
		l := reconnect.NewLimiter(1, 1e-6)
		r.serve()
		first := r.spawn(reconnect.Config{Limiter: l})
		r.accept()
		r.spawn(reconnect.Config{Limiter: l, GiveUp: time.Second})
		c := actortest.Next[*reconnect.Closed](r.owner)
		if !is(c.Err, reconnect.ErrGaveUp) || strings.Contains(c.Err.Error(), "%!") {
			t.Errorf("got %v", c.Err)
		}
		r.link = first
		r.finish()
	})
}

// A connection that comes and goes does not leave a timer behind each time.
func TestTimersDoNotPileUp(t *testing.T) {
	inRig(t, func(r *rig) {
		r.serve()
		r.spawn(reconnect.Config{GiveUp: 1000 * time.Hour})
		timers := func() (n int) {
			r.Wait()
			for _, l := range r.Runtime().Loops() {
				n += l.Timers
			}
			return n
		}
		conn, _ := r.accept()
		before := timers()
		for range 20 {
			r.Disconnect(conn)
			r.ended()
			conn, _ = r.accept()
		}
		if after := timers(); after > before+2 {
			t.Errorf("%d timers, and %d before 20 generations", after, before)
		}
		r.finish()
		r.Advance(time.Minute) // Close's is over
		if left := timers(); left > 0 {
			t.Errorf("%d timers are left", left)
		}
	})
}
