package reconnect_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// Resolve is called before each attempt, and its present answer is dialled.
func TestResolve(t *testing.T) {
	onFlavors(t, func(r *rig) {
		var asked []string
		answers := []string{"10.0.0.2:1", "10.0.0.2:2", there}
		r.serve()
		r.spawn(reconnect.Config{Dial: rdma.Dial{Addr: "b"}, Resolve: func(_ context.Context, name string) (string, error) {
			asked = append(asked, name)
			return answers[len(asked)-1], nil
		}})
		r.accept()
		if len(asked) != 3 || asked[0] != "b" {
			r.t.Errorf("asked for %q", asked)
		}
		r.finish()
	})
}

// A Resolve that fails, panics, or does not return fails the attempt. One that does not return is
// called again only when it has.
func TestResolveFails(t *testing.T) {
	errNo := errors.New("no such name")
	calls := 0
	block := make(chan struct{})
	for name, bad := range map[string]func() error{
		"error":  func() error { return errNo },
		"panic":  func() error { panic("for the test") },
		"Goexit": func() error { runtime.Goexit(); return nil },
		"block":  func() error { <-block; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				calls, block = 0, make(chan struct{})
				r.serve()
				r.spawn(reconnect.Config{Dial: rdma.Dial{Addr: "b", Timeout: time.Second}, Resolve: func(ctx context.Context, _ string) (string, error) {
					if calls++; calls == 1 {
						if _, ok := ctx.Deadline(); !ok {
							r.t.Error("Resolve has all the time in the world")
						}
						return "", bad()
					}
					return there, nil
				}})
				d := actortest.Next[*reconnect.Down](r.owner)
				if !is(d.Err, reconnect.ErrResolve) || d.WasUp || name == "error" && !is(d.Err, errNo) || name == "block" && !is(d.Err, unix.ETIMEDOUT) {
					r.t.Errorf("the first attempt: %+v", d)
				}
				if name == "block" {
					for range 3 {
						actortest.Next[*reconnect.Down](r.owner)
					}
					if calls != 1 {
						r.t.Errorf("called %d times at once", calls)
					}
				}
				close(block)
				r.accept()
				r.finish()
			})
		})
	}
}

// An actor without an address waits for one. It dials immediately when it gets one, and the next
// attempt goes to the next one.
func TestAddress(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		r.link = reconnect.Spawn(r.Runtime(), r.owner.PID(), reconnect.Config{
			Peers: reconnect.NewPeers(reconnect.PeersConfig{Node: 1}), Peer: 2, GiveUp: time.Hour,
		})
		r.Advance(time.Minute)
		r.owner.Silent(0)
		r.owner.Send(r.link, &reconnect.Address{})
		if m := actortest.Next[*reconnect.Refused](r.owner); !is(m.Err, unix.EINVAL) {
			r.t.Errorf("an empty address: %v", m)
		}
		r.owner.Send(r.link, &reconnect.Address{Addr: "10.0.0.2:1"})
		if d := actortest.Next[*reconnect.Down](r.owner); d.WasUp {
			r.t.Errorf("at an address where nobody listens: %+v", d)
		}
		r.owner.Send(r.link, &reconnect.Address{Addr: there})
		r.accept()
		r.finish()
	})
}

// The time without an address and a connection is bounded, also by default. With an address the
// actor goes on.
func TestPassiveGivesUp(t *testing.T) {
	inRig(t, func(r *rig) {
		cfg := reconnect.Config{Peers: reconnect.NewPeers(reconnect.PeersConfig{Node: 1}), Peer: 2}
		r.link = reconnect.Spawn(r.Runtime(), r.owner.PID(), cfg)
		if c := actortest.Next[*reconnect.Closed](r.owner); !is(c.Err, reconnect.ErrGaveUp) || r.Elapsed() != 10*time.Second {
			r.t.Errorf("after %v: %v", r.Elapsed(), c)
		}
		r.link = reconnect.Spawn(r.Runtime(), r.owner.PID(), cfg)
		r.owner.Send(r.link, &reconnect.Address{Addr: there})
		r.Advance(time.Minute)
		r.serve()
		r.accept()
		r.finish()
	})
}

// If the name changes while Resolve is asked about the old one, the answer is of no use: it is
// asked about the new one. When the actor ends, Resolve's context does.
func TestResolveOfAnOldName(t *testing.T) {
	inRig(t, func(r *rig) {
		var asked []string
		ended := make(chan error, 1)
		r.serve()
		r.spawn(reconnect.Config{Dial: rdma.Dial{Addr: "old"}, Resolve: func(ctx context.Context, name string) (string, error) {
			asked = append(asked, name)
			switch name {
			case "old":
				time.Sleep(time.Second)
				return "10.0.0.2:1", nil
			case "new":
				return there, nil
			}
			<-ctx.Done()
			ended <- ctx.Err()
			return "", ctx.Err()
		}})
		r.Wait()
		r.owner.Send(r.link, &reconnect.Address{Addr: "new"})
		conn, _ := r.accept()
		if !slices.Equal(asked, []string{"old", "new"}) || r.Elapsed() != time.Second {
			r.t.Errorf("after %v it was asked about %q", r.Elapsed(), asked)
		}
		r.owner.Send(r.link, &reconnect.Address{Addr: "third"})
		r.Disconnect(conn)
		actortest.Next[*reconnect.Down](r.owner)
		r.Advance(time.Second)
		r.owner.Send(r.link, &rdma.DestroyID{})
		actortest.Next[*reconnect.Closed](r.owner)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.t.Errorf("Resolve has ended because of %v", err)
		}
	})
}
