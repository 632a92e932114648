package reconnect_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

func is(err, target error) bool { return errors.Is(err, target) }

// untilClosed reads what the owner is told until it is the last.
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

// Whatever ends it, at whatever moment, ends it at once and whole: between two attempts, in mid-dial, connected.
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
			"context": {func(_ *rig, cancel func()) { cancel() }, cause},
			"stop":    {func(r *rig, _ func()) { r.System().Root.Stop(r.link) }, rdma.ErrStopped},
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

// Limits of patience: attempts in a row, time without a connection, also in mid-dial.
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

// A verdict ends it; a predicate of the application's may say otherwise.
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

// An address that makes no sense is the caller's mistake.
func TestOwnMistake(t *testing.T) {
	inRig(t, func(r *rig) {
		r.spawn(reconnect.Config{Dial: rdma.Dial{Addr: "nowhere"}})
		if _, c := r.untilClosed(); !is(c.Err, reconnect.ErrPermanent) || !is(c.Err, unix.EINVAL) {
			t.Errorf("%+v", c)
		}
	})
}
