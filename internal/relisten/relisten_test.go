package relisten_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/relisten"
	"github.com/rdmactor/rdmactor/states"
)

// rig is a listener on the machine with device mem1, and how it ended.
type rig struct {
	*actortest.World
	far *rdma.Runtime
	l   *relisten.Listener

	mu    sync.Mutex // held on the loop, too
	heard int
	ended []error
}

// ends returns the errors that Ended was called with.
func (r *rig) ends() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ended)
}

// begun returns how often Listening was called.
func (r *rig) begun() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

func inWorld(t *testing.T, addr string, giveUp time.Duration, test func(r *rig)) {
	t.Helper()
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		r := &rig{World: w, far: w.Host("mem1", "10.0.0.2")}
		l, err := relisten.Listen(w.T().Context(), r.far, r.config(addr, giveUp))
		if err != nil {
			w.T().Fatal(err)
		}
		r.l = l
		test(r)
		l.Close(w.T().Context())
	})
}

func (r *rig) config(addr string, giveUp time.Duration) relisten.Config {
	return relisten.Config{
		Name: "test", Addr: addr, GiveUp: giveUp,
		ID: rdma.IDConfig{Handler: actor.PropsFromFunc(func(ctx actor.Context) { accept(ctx) })},
		Listening: func(rdma.Addr) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.heard++
		},
		Ended: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, err)
		},
	}
}

func accept(ctx actor.Context) {
	if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
		ctx.Respond(&rdma.Accept{})
	}
}

// reaches reports whether a peer can connect to the address that the listener has.
func (r *rig) reaches() error {
	id := r.Runtime().CreateID(nil)
	_, err := rdma.Ask[*rdma.Established](r.T().Context(), r.Runtime(), id, &rdma.Dial{Addr: r.l.Addr().String()})
	r.System().Root.Send(id, &rdma.DestroyID{})
	return err
}

// listening returns the identifier that listens; nil: none does.
func (r *rig) listening() *actor.PID {
	for _, id := range r.far.Inspect() {
		if id.State == states.Listening {
			return id.PID
		}
	}
	return nil
}

// A port that was chosen stays: peers know it. So does that of a listener on all devices, and
// Listening is called once.
func TestSamePort(t *testing.T) {
	inWorld(t, "10.0.0.2:0", 0, func(r *rig) {
		for range 3 {
			r.RemoveDevice("mem1")
			time.Sleep(time.Minute)
			if r.reaches() == nil {
				r.T().Error("connected without a device")
			}
			r.AddDevice("mem1")
			time.Sleep(time.Minute)
			if err := r.reaches(); err != nil {
				r.T().Error(err)
			}
		}
		if r.begun() != 1 || r.ends() != nil {
			r.T().Errorf("Listening was called %d times, and Ended with %v", r.begun(), r.ends())
		}
	})
}

// Whatever ends the identifier, even a command of another program, the listener listens again.
func TestIdentifierDestroyed(t *testing.T) {
	for name, end := range map[string]func(r *rig, id *actor.PID){
		"destroyed": func(r *rig, id *actor.PID) { r.System().Root.Send(id, &rdma.DestroyID{}) },
		"stopped":   func(r *rig, id *actor.PID) { r.System().Root.Stop(id) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
				end(r, r.listening())
				time.Sleep(time.Second)
				if err := r.reaches(); err != nil {
					r.T().Error(err)
				}
			})
		})
	}
}

// A listener for which there are no identifiers tries again, too.
func TestOutOfIdentifiers(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
		r.RunOut(unix.EMFILE)
		r.RemoveDevice("mem1")
		r.AddDevice("mem1")
		time.Sleep(time.Minute)
		if r.listening() != nil {
			r.T().Error("it listens without an identifier")
		}
		r.RunOut(0)
		time.Sleep(time.Minute)
		if err := r.reaches(); err != nil {
			r.T().Error(err)
		}
	})
}

// A listener without a bound never gives up. One with a bound ends once, when that is over, with
// the cause and the reason why it could not listen again.
func TestGivesUp(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
		r.RemoveDevice("mem1")
		time.Sleep(2 * time.Hour)
		r.AddDevice("mem1")
		time.Sleep(time.Minute)
		if err := r.reaches(); err != nil || r.ends() != nil {
			r.T().Errorf("%v; Ended was called with %v", err, r.ends())
		}
	})
	inWorld(t, "10.0.0.2:7471", time.Minute, func(r *rig) {
		r.RemoveDevice("mem1")
		time.Sleep(time.Minute - 1)
		if r.ends() != nil {
			r.T().Errorf("ended before its time: %v", r.ends())
		}
		time.Sleep(time.Nanosecond)
		r.Wait()
		if len(r.ends()) != 1 {
			r.T().Fatalf("Ended was called with %v", r.ends())
		}
		if err := r.ends()[0]; !errors.Is(err, unix.ENODEV) || !errors.Is(err, unix.EADDRNOTAVAIL) {
			r.T().Errorf("ended with %v, want the device's end and what the last attempt met", err)
		}
		r.AddDevice("mem1")
		time.Sleep(time.Hour)
		if n := len(r.far.Inspect()); n != 0 || len(r.ends()) != 1 {
			r.T().Errorf("%d identifiers are left; Ended was called with %v", n, r.ends())
		}
	})
}

// A driver that is lost does not return, so the listener ends immediately.
func TestLostDriver(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
		why := &rdma.RemovedError{Device: "mem1", Err: unix.EACCES}
		r.l.Receives(&rdma.Closed{Err: why})
		<-r.l.Gone()
		if len(r.ends()) != 1 || !errors.Is(r.ends()[0], why) {
			r.T().Errorf("Ended was called with %v, want %v", r.ends(), why)
		}
	})
}

// A listener that was stopped frees its address, and Ended is not called.
func TestStop(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
		r.l.Stop()
		<-r.l.Gone()
		r.Wait()
		if n := len(r.far.Inspect()); n != 0 || r.ends() != nil {
			r.T().Errorf("%d identifiers are left; Ended was called with %v", n, r.ends())
		}
	})
}

// The bound is of one outage, not of all together, nor of the time before it.
func TestBoundOfOneOutage(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", time.Minute, func(r *rig) {
		for range 5 {
			r.RemoveDevice("mem1")
			time.Sleep(50 * time.Second)
			r.AddDevice("mem1")
			time.Sleep(20 * time.Second)
		}
		if err := r.reaches(); err != nil || r.ends() != nil {
			r.T().Errorf("%v; Ended was called with %v", err, r.ends())
		}
	})
}

// A listener that ends as soon as it listens is made again ever more rarely.
func TestFlapping(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
		n := 0
		for range 60_000 { // a minute
			if id := r.listening(); id != nil {
				n++
				r.System().Root.Send(id, &rdma.DestroyID{})
			}
			time.Sleep(time.Millisecond)
		}
		if n < 10 || n > 20 {
			r.T().Errorf("it listened %d times in a minute", n)
		}
	})
}

// After an outage the pauses are short again when it has listened for a while, and not before.
func TestPausesBeginAnew(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
		reset := func() (took time.Duration) {
			r.RemoveDevice("mem1")
			r.AddDevice("mem1")
			r.Wait()
			begin := time.Now()
			for r.listening() == nil {
				time.Sleep(time.Millisecond)
			}
			return time.Since(begin)
		}
		r.RemoveDevice("mem1")
		time.Sleep(time.Hour)
		r.AddDevice("mem1")
		for r.listening() == nil {
			time.Sleep(time.Millisecond)
		}
		if d := reset(); d < time.Second {
			r.T().Errorf("it has listened for a moment, and the pause is %v", d)
		}
		time.Sleep(time.Hour)
		if d := reset(); d > 200*time.Millisecond {
			r.T().Errorf("it has listened for an hour, and the pause is %v", d)
		}
	})
}

// Close ends a listener in any state, once, without waiting for the end of a pause, and leaves
// nothing. Ended is called with nil.
func TestClose(t *testing.T) {
	for name, before := range map[string]func(r *rig){
		"listening": func(*rig) {},
		"paused":    func(r *rig) { r.RemoveDevice("mem1"); time.Sleep(time.Second) },
		"paused, out of identifiers": func(r *rig) {
			r.RunOut(unix.EMFILE)
			r.RemoveDevice("mem1")
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "10.0.0.2:7471", relisten.GiveUp, func(r *rig) {
				before(r)
				begin := time.Now()
				for range 2 {
					r.l.Close(r.T().Context())
				}
				<-r.l.Gone()
				if d := time.Since(begin); d > 0 {
					r.T().Errorf("Close took %v", d)
				}
				if n := len(r.far.Inspect()); n != 0 || len(r.ends()) != 1 || r.ends()[0] != nil {
					r.T().Errorf("%d identifiers are left; Ended was called with %v", n, r.ends())
				}
				r.RunOut(0)
			})
		})
	}
}

// Shutdown ends a listener that listens, and one in a pause.
func TestShutdown(t *testing.T) {
	for name, before := range map[string]func(r *rig){
		"listening": func(*rig) {},
		"paused":    func(r *rig) { r.RemoveDevice("mem1"); time.Sleep(time.Second) },
		"paused, out of identifiers": func(r *rig) {
			r.RunOut(unix.EMFILE)
			r.RemoveDevice("mem1")
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "10.0.0.2:7471", relisten.GiveUp, func(r *rig) {
				before(r)
				if err := r.far.Shutdown(r.T().Context()); err != nil {
					r.T().Error(err)
				}
				<-r.l.Gone()
				if len(r.ends()) != 1 || !errors.Is(r.ends()[0], rdma.ErrShutdown) {
					r.T().Errorf("Ended was called with %v, want ErrShutdown", r.ends())
				}
				r.RunOut(0)
				again, err := relisten.Listen(r.T().Context(), r.far, r.config("10.0.0.2:7471", 0))
				if err == nil {
					r.T().Errorf("%v listens after Shutdown", again.Addr())
				}
			})
		})
	}
}

// A Listen that fails returns why, and leaves nothing: neither an identifier nor a call of Ended.
func TestListenFails(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		for _, tt := range []struct {
			ctx  context.Context
			addr string
			want error
		}{
			{r.T().Context(), "10.0.0.2:7471", unix.EADDRINUSE},
			{r.T().Context(), "10.0.0.9:7471", unix.EADDRNOTAVAIL},
			{r.T().Context(), "nonsense", unix.EINVAL},
			{over, "10.0.0.2:7472", context.Canceled},
		} {
			_, err := relisten.Listen(tt.ctx, r.far, r.config(tt.addr, 0))
			if !errors.Is(err, tt.want) {
				r.T().Errorf("Listen at %s: %v, want %v", tt.addr, err, tt.want)
			}
		}
		r.RunOut(unix.EMFILE)
		if _, err := relisten.Listen(r.T().Context(), r.far, r.config("10.0.0.2:7472", 0)); !errors.Is(err, unix.EMFILE) {
			r.T().Errorf("Listen without identifiers: %v", err)
		}
		r.RunOut(0)
		time.Sleep(time.Hour)
		if n := len(r.far.Inspect()); n != 1 || r.ends() != nil {
			r.T().Errorf("%d identifiers, want the one that listens; Ended was called with %v", n, r.ends())
		}
	})
}

// On a loop, Listen would wait for itself. Close does not wait there.
func TestOnALoop(t *testing.T) {
	inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
		refused := make(chan error, 1)
		pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				_, err := relisten.Listen(context.Background(), r.far, r.config("10.0.0.2:7472", 0))
				refused <- err
				r.l.Close(context.Background())
			}
		}, r.far.OnLoop()))
		r.System().Root.Send(pid, "now")
		if err := <-refused; !errors.Is(err, eventloop.ErrOnLoop) {
			r.T().Errorf("Listen on a loop: %v", err)
		}
		<-r.l.Gone()
		r.System().Root.Stop(pid)
	})
}

// A callback that ends the loop ends the listener with the loop's error, which is not that of the
// runtime's Shutdown: listening, and in a pause.
func TestLoopEnded(t *testing.T) {
	for _, paused := range []bool{false, true} {
		inWorld(t, "10.0.0.2:7471", 0, func(r *rig) {
			if paused {
				r.RemoveDevice("mem1")
				time.Sleep(time.Second)
			}
			r.ExpectPanic("Goexit")
			pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if ctx.Message() == "exit" {
					runtime.Goexit()
				}
			}, r.far.OnLoop()))
			r.System().Root.Send(pid, "exit")
			r.Wait()
			ends := r.ends()
			var gone *eventloop.GoexitError
			if len(ends) != 1 || !errors.As(ends[0], &gone) || errors.Is(ends[0], rdma.ErrShutdown) {
				r.T().Errorf("paused: %v, it ended with %v", paused, ends)
			}
		})
	}
}
