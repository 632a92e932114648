package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// remoteStarted does to an ActorSystem what Proto.Actor's remote.Start does: from now on its actors
// have another address.
func remoteStarted(w *world) string {
	const at = "127.0.0.1:8090"
	w.sys.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (actor.Process, bool) {
		w.remote = append(w.remote, pid)
		return w.sys.DeadLetter, true
	})
	w.sys.ProcessRegistry.Address = at
	return at
}

// Whatever address a PID of this system was made with, its actor is the one that it names.
func TestOwnersFromBeforeRemoteStart(t *testing.T) {
	for name, where := range map[string]func(rt *Runtime) actor.PropsOption{"on": (*Runtime).OnLoop, "off": (*Runtime).OffLoop} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, states.IWARP, func(w *world) {
				client, server := newProbe(w, w.sys, where(w.rt), nil), newProbe(w, w.sys, where(w.far), nil)
				at := remoteStarted(w)
				server.reactWith(func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok {
						keep(w, m)
					}
				})
				lis := w.listen(server, IDConfig{MaxMessage: 64, Credits: 32})
				c := w.rt.CreateID(client.pid, IDConfig{MaxMessage: 64, Credits: 32})
				client.send(c, &Dial{Addr: there + ":7471"})
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				next[*Established](client)
				for range 250 {
					client.send(c, NewSend([]byte("x")))
				}
				settle()
				if n := len(server.got); n != 32 {
					w.Errorf("an owner that retains everything got %d messages of 250, and granted 32", n)
				}
				// The same actor by its other name: it gets the answer once, as the owner.
				for len(server.got) > 0 {
					<-server.got
				}
				renamed := actor.NewPID(at, server.pid.Id)
				w.sys.Root.RequestWithCustomSender(s, &Disconnect{}, renamed)
				if k := kinds(until[*Closed](server)); k != "Disconnected Closed" {
					w.Errorf("got %s", k)
				}
				until[*Closed](client)
				// Its death is noticed under either name.
				owned := w.far.CreateID(renamed, IDConfig{})
				settle()
				w.sys.Root.Stop(server.pid)
				settle()
				for _, id := range []*actor.PID{owned, lis} {
					if st, ok := w.state(id); ok {
						w.Errorf("%v is still there, %v, and its owner has stopped", id, st)
					}
				}
			})
		})
	}
}

// An actor of another system cannot own an identifier, and can be answered.
func TestRemoteOwnerIsRefused(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		remoteStarted(w)
		far := actor.NewPID("10.9.9.9:8090", "owner")
		p := w.probe()
		var id *actor.PID
		w.whileBlocked(w.rt, func() { // the command waits when the identifier turns out to be none
			id = w.rt.CreateID(far, IDConfig{})
			p.send(id, &cmid.BindAddr{Addr: MustAddr(here + ":0")})
		})
		f, _ := next[*CommandFailed](p)
		is(w, f, ErrRemoteOwner)
		is(w, f, unix.EREMOTE)
		settle()
		if st, ok := w.state(id); ok {
			w.Errorf("the identifier is there: %v", st)
		}
		if n := len(w.remote); n > 0 {
			w.Errorf("%d messages went to the remote actor", n)
		}
		mine := w.rt.CreateID(p.pid, IDConfig{})
		p.send(mine, &Handover{To: far})
		f, _ = next[*CommandFailed](p)
		is(w, f, ErrRemoteOwner)
		w.sys.Root.RequestWithCustomSender(mine, &cmid.BindAddr{Addr: MustAddr(here + ":0")}, far)
		settle()
		if len(w.remote) == 0 || !w.remote[len(w.remote)-1].Equal(far) {
			w.Errorf("a remote sender was not answered: %v", w.remote)
		}
		w.sys.Root.Send(mine, &DestroyID{})
		next[*Closed](p)
	})
}

// An OnLoop that a WithMailbox has undone is found out where its actor becomes an owner.
func TestOnLoopUndone(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		for name, where := range map[string]actor.PropsOption{"on": w.rt.OnLoop(), "off": w.rt.OffLoop()} {
			p := newProbe(w, w.sys, func(props *actor.Props) { props.Configure(where, actor.WithMailbox(actor.Unbounded())) }, nil)
			fine := newProbe(w, w.sys, func(props *actor.Props) { props.Configure(actor.WithMailbox(actor.Unbounded()), where) }, nil)
			// the command waits when the identifier turns out to be none
			w.whileBlocked(w.rt, func() {
				fine.send(w.rt.CreateID(p.pid, IDConfig{}), &cmid.BindAddr{Addr: MustAddr(here + ":0")})
			})
			f, _ := next[*CommandFailed](fine)
			if is(w, f, ErrMailbox); !contains(f.Error(), "WithMailbox") {
				w.Errorf("%s: %v does not say what has happened", name, f)
			}
			c, _ := next[*Closed](p)
			is(w, c.Err, ErrMailbox)
			mine := w.rt.CreateID(fine.pid, IDConfig{})
			fine.send(mine, &Handover{To: p.pid})
			f, _ = next[*CommandFailed](fine)
			is(w, f, ErrMailbox)
			fine.send(mine, &DestroyID{})
			next[*Closed](fine)
		}
	})
}
