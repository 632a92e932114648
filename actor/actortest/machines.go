package actortest

import (
	"log/slog"
	"strconv"
	"testing/synctest"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// Host adds a machine and returns its runtime, which joins the same actor system. The machine has
// one device, with addresses such as "10.0.0.2"; without a length their subnet is /24 or /64. Names
// and addresses that are taken panic; those of a machine that has crashed are free again.
func (w *World) Host(device string, addrs ...string) *rdma.Runtime {
	w.t.Helper()
	w.noteProgress(0)
	return w.openRuntime(device, device, addrs...)
}

// openRuntime starts a runtime on a host, with its first device.
func (w *World) openRuntime(host, device string, addrs ...string) *rdma.Runtime {
	w.t.Helper()
	h := w.fabric.Host(host)
	m := &machine{host: h}
	w.plugIn(m, device, addrs)
	cfg := w.cfg.Runtime
	cfg.Device = h.Driver()
	if cfg.Logger == nil {
		cfg.Logger = w.newLogger(slog.LevelDebug)
	}
	cfg.Loops = make([]eventloop.Config, max(len(cfg.Loops), 1))
	for i := range cfg.Loops {
		name := device
		if i > 0 {
			name += "-" + strconv.Itoa(i)
		}
		p := &poller{Poller: eventlooptest.NewPoller(), t: w.t, onStall: w.cfg.OnStall, stopped: &m.stopped, since: time.Now()}
		w.pollers = append(w.pollers, p)
		cfg.Loops[i] = eventloop.Config{Name: name, Poller: p, CheckGoroutine: true, OnPanic: w.panics.handlePanic, OnStall: p.recordStall}
	}
	rt, err := rdma.Open(w.sys, cfg)
	if err != nil {
		w.t.Fatalf("actortest: %v", err)
	}
	m.rt = rt
	w.machines = append(w.machines, m)
	return rt
}

func (w *World) plugIn(m *machine, name string, addrs []string) {
	m.host.AddDevice(name, addrs...)
	w.devices[name] = &plug{m: m, addrs: addrs, in: true}
}

// Crash kills the program on the machine that has the device, as kill -9 does: its Runtime, and
// the actors on its loops, stop and get nothing, there are no goodbyes, and the kernel closes the
// program's objects. On iWARP peers see the end of the stream, or a reset if messages came that a
// frozen program had not read; on InfiniBand a disconnect request, as rxe's peers do. A dial finds
// no listener. A machine that loses its power sends nothing: Cut its links first, then Crash it.
//
// Host may start another program in its place, with the same device and addresses. When the test
// function has returned, the crashed program goes on until it is shut down, so that leaks are
// found in it as well: its actors get DeviceRemoval and Closed then. Actors that are not on its
// loops, Probes and those OffLoop, live on all the time; their messages to its identifiers are not
// answered before.
//
// The machine with which the test begins has the Probes, and cannot crash or be frozen.
func (w *World) Crash(device string) {
	w.t.Helper()
	m := w.stoppableMachine("Crash", device)
	m.stopped.Store(true)
	m.host.Crash()
	m.dead = true
	for _, p := range w.devices {
		p.in = p.in && p.m != m
	}
	w.Wait()
}

// Freeze stops the program on the machine that has the device, as SIGSTOP does: its Runtime and
// the actors on its loops do nothing until Thaw, nor do their timers. The machine goes on: on
// iWARP TCP accepts bytes, which stay unread; on InfiniBand the device acknowledges messages as
// long as it has receives, and answers Reads. So no transport notices. The machine that the test
// begins with cannot be frozen: see Crash.
func (w *World) Freeze(device string) {
	w.t.Helper()
	m := w.stoppableMachine("Freeze", device)
	m.stopped.Store(true)
	m.host.Freeze()
	w.Wait()
}

// Thaw ends Freeze. The events of the freeze are delivered now.
func (w *World) Thaw(device string) {
	w.t.Helper()
	m := w.machineWith("Thaw", device)
	if !m.stopped.Load() || m.dead {
		w.t.Fatalf("actortest: Thaw: the machine with %q is not frozen", device)
	}
	m.host.Thaw()
	w.Wait()
	m.stopped.Store(false)
}

// Cut cuts the link between the machines that have the devices: messages from either to the other
// are lost, and there is no notification. An operation under way fails after a while: on
// InfiniBand the device gives up after 17 s, on iWARP TCP after 30 s. Messages that a transport
// repeats until then arrive after Heal.
func (w *World) Cut(device, other string) *Fault {
	w.t.Helper()
	a, b := w.machineWith("Cut", device), w.machineWith("Cut", other)
	if a.host == b.host {
		w.t.Fatalf("actortest: Cut: %q and %q are on one machine", device, other)
	}
	w.Wait() // all sent messages have left
	return w.fabric.Cut(a.host, b.host)
}

// Heal ends Cut.
func (w *World) Heal(device, other string) {
	w.t.Helper()
	if !w.fabric.Heal(w.machineWith("Heal", device).host, w.machineWith("Heal", other).host) {
		w.t.Fatalf("actortest: Heal: the link between %q and %q is not cut", device, other)
	}
	w.Wait()
}

// machineWith returns the machine that has a device, or had it.
func (w *World) machineWith(what, device string) *machine {
	w.t.Helper()
	p := w.devices[device]
	if p == nil {
		w.t.Fatalf("actortest: %s: there is no device %q", what, device)
	}
	return p.m
}

// stoppableMachine returns a device's machine, for faults that a machine does not survive.
func (w *World) stoppableMachine(what, device string) *machine {
	w.t.Helper()
	m := w.machineWith(what, device)
	switch {
	case m == w.machines[0]:
		w.t.Fatalf("actortest: %s: the Probes are on the machine with %q: have another one play that part (Host)", what, device)
	case m.dead:
		w.t.Fatalf("actortest: %s: the machine with %q has crashed", what, device)
	}
	return m
}

// resumeMachines resumes every machine, so that it can be shut down.
func (w *World) resumeMachines() {
	for _, m := range w.machines {
		m.host.Thaw()
		m.host.Unwind()
		synctest.Wait()
		m.stopped.Store(false)
	}
}
