package actor

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Memory that was made while Dial tried an address goes with that address: after the connection to
// the next one it no longer exists, takes nothing of IDConfig.Memory, and operations that name it
// are refused. On a device that takes its time the first connection's memory outlives it.
func TestMemoryOfAnAddressTriedBefore(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
		w.rt.resolve = addresses(there+":1", there+":7471")
		near.takes = map[states.Op]time.Duration{
			states.OpConnect: time.Second, states.OpResolveRoute: time.Second, states.OpDestroyID: 10 * time.Second,
		}
		server, p := w.farProbe(), w.probe()
		w.listen(server)
		id := w.rt.CreateID(p.pid, IDConfig{Memory: 100})
		p.send(id, &Dial{Addr: "there:7471"})
		time.Sleep(1500 * time.Millisecond) // connecting to the first
		first := memory(p, id, 100, rw)
		grant(p, id, first)
		refused := func(when string) {
			w.Helper()
			for _, cmd := range []Command{&Grant{Memory: first}, &Revoke{Memory: first}, &FreeMemory{Memory: first}} {
				p.send(id, cmd)
				if f, _ := next[*CommandFailed](p); !errors.Is(f, ErrMemoryGone) {
					w.Errorf("%s: %v, want %v", when, f, ErrMemoryGone)
				}
			}
		}
		time.Sleep(time.Second) // resolving the route to the second: there is no connection
		refused("between two addresses")
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](p)
		refused("connected to the next address")
		p.send(id, &Read{Memory: first, Key: RemoteKey{Length: 8, Rights: rw}, Length: 8})
		f, _ := next[*AccessError](p)
		is(w, f, ErrMemoryGone)
		memory(p, id, 100, rw)
	})
}

// A Read or Write that comes too late is answered as every other one that fails.
func TestAccessOfADestroyedIdentifier(t *testing.T) {
	onKernelLike(t, kernelLike{takes: map[states.Op]time.Duration{states.OpDestroyID: time.Second}}, func(w *world, _, _ *kernelLike) {
		p := w.connect(IDConfig{Memory: 100})
		p.client.send(p.c, &DestroyID{})
		for _, cmd := range []Command{&Read{}, &Write{}} {
			p.client.send(p.c, cmd)
			f, _ := next[*AccessError](p.client)
			if is(w, f, unix.ENOENT); f.Failed() != cmd {
				w.Errorf("%v names another command", f)
			}
		}
	})
}

// stubborn is a device that gives no memory back.
type stubborn struct{ verbs.Device }

func (stubborn) Free(*verbs.MR) error { return unix.EBUSY }

// A device that fails to release a registration leaves the memory open to the peer: then neither
// Revoke nor FreeMemory may report success.
func TestMemoryThatTheDeviceKeeps(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 100})
		m := memory(p.client, p.c, 50, rw)
		key := grant(p.client, p.c, m)
		fill(p.client, p.c, m, "mine")
		var was verbs.Device
		on := func(fn func(d *datapath.Device)) { w.onLoop(w.rt, func(l *loop) { fn(l.Devices[0]) }) }
		on(func(d *datapath.Device) { was, d.Verbs = d.Verbs, stubborn{d.Verbs} })
		for _, cmd := range []Command{&Revoke{Memory: m}, &FreeMemory{Memory: m}} {
			p.client.send(p.c, cmd)
			f, _ := next[*CommandFailed](p.client)
			is(w, f, unix.EBUSY)
		}
		on(func(d *datapath.Device) { d.Verbs = was })
		if grant(p.client, p.c, m) != key || string(contents(p.client, p.c, m)[:4]) != "mine" {
			w.Error("memory that could not be taken back has changed")
		}
		p.client.send(p.c, &FreeMemory{Memory: m})
		next[*Done](p.client)
		memory(p.client, p.c, 100, rw)
	})
}
