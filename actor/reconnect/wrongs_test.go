package reconnect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// A node has no connection to itself. Two actors of one node for one peer would reject each other's
// connections, so the second ends immediately.
func TestWrongPeer(t *testing.T) {
	for name, peer := range map[string]uint64{"itself": 1, "one that has a link": 2} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				p := reconnect.NewPeers(reconnect.PeersConfig{Node: 1, Incarnation: 1})
				r.serve()
				first := r.spawn(reconnect.Config{Peers: p, Peer: 2})
				r.spawn(reconnect.Config{Peers: p, Peer: peer})
				_, c := r.untilClosedBeside()
				if !is(c.Err, unix.EINVAL) {
					r.t.Errorf("ended because of %v", c.Err)
				}
				r.Wait()
				if _, ok := r.System().ProcessRegistry.GetLocal(r.link.Id); ok {
					r.t.Error("it has delivered Closed, and is still there")
				}
				r.link = first
				r.finish()
			})
		})
	}
}

// untilClosedBeside waits as untilClosed does, beside another link, which goes on.
func (r *rig) untilClosedBeside() (before []any, c *reconnect.Closed) {
	r.t.Helper()
	for {
		m := actortest.Next[any](r.owner)
		if c, ok := m.(*reconnect.Closed); ok {
			return before, c
		}
		before = append(before, m)
	}
}

// A panic of user code ends the actor. Closed is the last message also then, after the waiting
// messages were refused.
func TestPanicInPermanent(t *testing.T) {
	inRig(t, func(r *rig) {
		r.ExpectPanic("the user's")
		spawned := make(chan struct{})
		r.spawn(reconnect.Config{Permanent: func(rdma.Failure) bool {
			<-spawned // r.link is known
			for tag := range uint64(3) {
				r.System().Root.Send(r.link, reconnect.NewSend(tag, []byte("waits")))
			}
			panic("the user's")
		}})
		close(spawned)
		before, c := r.untilClosedBeside()
		refused := 0
		for _, m := range before {
			if _, ok := m.(*reconnect.Refused); ok {
				refused++
			}
		}
		if refused != 3 {
			r.t.Errorf("before Closed %d messages were refused, and 3 waited: %T", refused, before)
		}
		if !is(c.Err, rdma.ErrStopped) || !strings.Contains(c.Err.Error(), "the user's") {
			r.t.Errorf("Closed says %v", c.Err)
		}
		r.owner.Silent(time.Minute)
	})
}

// An owner that cannot receive messages is refused, as CreateID refuses it.
func TestWrongOwner(t *testing.T) {
	inRig(t, func(r *rig) {
		far := reconnect.Spawn(r.Runtime(), actor.NewPID("10.9.9.9:8090", "owner"), reconnect.Config{Dial: rdma.Dial{Addr: there}})
		r.Wait()
		if _, ok := r.System().ProcessRegistry.GetLocal(far.Id); ok {
			r.t.Error("it is there, for an owner on another system")
		}
		pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if c, ok := ctx.Message().(*reconnect.Closed); ok {
				ctx.Send(r.owner.PID(), c)
			}
		}, r.Runtime().OnLoop(), actor.WithMailbox(actor.Unbounded())))
		reconnect.Spawn(r.Runtime(), pid, reconnect.Config{Dial: rdma.Dial{Addr: there}})
		if c := actortest.Next[*reconnect.Closed](r.owner); !is(c.Err, rdma.ErrMailbox) {
			r.t.Errorf("Closed says %v", c.Err)
		}
		r.System().Root.Stop(pid)
	})
}
