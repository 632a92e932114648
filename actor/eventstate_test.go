package actor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// routeQuery is a further stage.
var routeQuery = stage{"route-query", states.RouteQuery, func(w *world, o *probe) *actor.PID {
	id := w.rt.CreateID(o.pid, IDConfig{})
	o.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
	next[*cmid.AddrResolved](o)
	w.f.Delay(time.Second)
	o.send(id, &cmid.ResolveRoute{})
	return id
}}

// infinibandStages are further stages. On iWARP the twin does not stay in them, and has no
// datagrams.
var infinibandStages = []stage{
	{"accepting", states.Accepting, func(w *world, o *probe) *actor.PID {
		w.listen(o)
		w.rt.sys.Root.Send(w.rt.CreateID(nil, IDConfig{}), &Dial{Addr: there + ":7471"})
		_, id := next[*ConnectRequest](o)
		w.f.Delay(time.Second)
		o.send(id, &Accept{})
		return id
	}},
	{"disconnecting", states.Disconnecting, func(w *world, o *probe) *actor.PID {
		w.listen(o)
		w.rt.sys.Root.Send(w.rt.CreateID(nil, IDConfig{}), &Dial{Addr: there + ":7471"})
		_, id := next[*ConnectRequest](o)
		o.send(id, &Accept{})
		next[*Established](o)
		w.f.Delay(time.Minute)
		o.send(id, &Disconnect{})
		time.Sleep(2 * goodbyeTime)
		return id
	}},
	{"connecting datagrams", states.Connecting, func(w *world, o *probe) *actor.PID {
		id := w.rt.CreateID(o.pid, IDConfig{QPType: cmid.QPTypeUD})
		o.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
		next[*cmid.AddrResolved](o)
		o.send(id, &cmid.ResolveRoute{})
		next[*cmid.RouteResolved](o)
		w.f.Silence(there)
		o.send(id, &Connect{})
		return id
	}},
}

// injected are the events that a device may report. ConnectRequest is missing, because it brings an
// identifier, and so are the events of kernels of 2025.
var injected = []states.Kind{
	states.KindAddrResolved, states.KindAddrError, states.KindRouteResolved, states.KindRouteError,
	states.KindConnectError, states.KindUnreachable, states.KindRejected, states.KindEstablished,
	states.KindDisconnected, states.KindDeviceRemoval, states.KindMulticastError, states.KindAddrChange,
	states.KindTimewaitExit,
}

// last are the states after which the manual pages leave only the identifier's destruction.
var last = map[states.State]bool{
	states.PeerDisconnected: true, states.Timewait: true, states.Failed: true, states.Removed: true,
}

// An event ends an identifier exactly if the state machine allows only destruction. For example,
// the kernel reports UNREACHABLE on every connected identifier whose next hop gets another MAC
// address, as after a failover: the connection goes on, so it must not be destroyed.
func TestEventsActAsTheStateSays(t *testing.T) {
	for name, flavor := range flavors {
		all := append(slices.Clone(stages), routeQuery)
		if flavor&states.IWARP == 0 {
			all = append(all, infinibandStages...)
		}
		for _, st := range all {
			for _, kind := range injected {
				t.Run(fmt.Sprintf("%s/%s/%v", name, st.name, kind), func(t *testing.T) {
					t.Parallel()
					near, far := new(kernelLike), new(kernelLike)
					inWorldOfTwo(t, flavor, near.over, far.over, func(w *world) { actsAsTheStateSays(w, st, kind) })
				})
			}
		}
	}
}

func actsAsTheStateSays(w *world, st stage, kind states.Kind) {
	owner := w.probe()
	pid := st.build(w, owner)
	settle()
	if got, _ := w.state(pid); got != st.want {
		w.Fatalf("the stage is %v, want %v", got, st.want)
	}
	var next states.State
	var verdict states.Verdict
	inject(w, pid, func(id *cmid.ID) *cmid.DriverEvent {
		next, verdict = states.Step(id.Flavor(), id.State(), states.Occurred(kind))
		return &cmid.DriverEvent{Kind: kind, Status: -int32(unix.ETIMEDOUT)}
	})
	settle()
	got, alive := w.state(pid)
	switch over := verdict == states.Allow && last[next]; {
	case over && alive:
		w.Errorf("the state is %v, and the identifier was not destroyed", got)
	case over:
	case !alive:
		w.Errorf("the state is %v, and the identifier was destroyed", next)
	case got != next:
		w.Errorf("the state is %v, want %v", got, next)
	}
	for len(owner.got) > 0 {
		g := owner.any()
		if f, ok := g.msg.(Failure); ok && f.Failed() == nil && alive && kind != states.KindMulticastError {
			w.Errorf("the owner got the failure %v, and nothing has failed", g)
		}
	}
}

// inject makes the device report what event returns for an identifier.
func inject(w *world, pid *actor.PID, event func(*cmid.ID) *cmid.DriverEvent) {
	w.Helper()
	for _, rt := range []*Runtime{w.rt, w.far} {
		w.onLoop(rt, func(l *loop) {
			for it := range l.ids {
				if it.pid.Equal(pid) {
					ev := event(it.id)
					rt.cfg.Device.(*kernelLike).in.Event(it.id.Handle(), ev)
					return
				}
			}
		})
	}
}
