package actortest

import (
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/states"
)

// Fault is a fault that a test injects. One that has never happened fails the test, which has not
// tested its purpose: a Drop of messages that this kind of device does not send, a Silence of an
// unused address. Optional permits that:
//
//	w.Drop(cmidtest.MsgSend, 3).Optional()
type Fault = cmidtest.Fault

// missedFaults returns the faults that have not happened.
func (w *World) missedFaults() (all []string) {
	for _, m := range w.fabric.Missed() {
		m = strings.Replace(m, "LatencyFor(", "Latency(", 1) // as it is called here
		all = append(all, m+" (Optional, if it need not)")
	}
	return all
}

// Silence makes addr silent from now on: messages to and from it are lost. Addresses without a
// device are always silent.
func (w *World) Silence(addr string) *Fault { return w.fabric.Silence(addr) }

// Unsilence ends Silence.
func (w *World) Unsilence(addr string) {
	w.t.Helper()
	if !w.fabric.Unsilence(addr) {
		w.t.Fatalf("actortest: Unsilence: %s is not silent", addr)
	}
}

// Drop loses the next n messages of a kind, 1 at least, such as cmidtest.MsgREQ. Updates of credits
// are MsgSend, too. To lose all messages, Silence an address, or Cut a link.
func (w *World) Drop(kind cmidtest.Message, n int) *Fault {
	w.t.Helper()
	if n < 1 {
		w.t.Fatalf("actortest: Drop(%v, %d) loses nothing", kind, n)
	}
	return w.fabric.Drop(kind, n)
}

// Delay is how long every message takes from now on, and how long address and route resolution
// take. It is 0 at first.
func (w *World) Delay(d time.Duration) { w.fabric.Delay(d) }

// Latency adds d to every message from and to addr.
func (w *World) Latency(addr string, d time.Duration) *Fault { return w.fabric.LatencyFor(addr, d) }

// Reorder makes the device's events and completions overtake one another from now on, as on a
// kernel device, which reports them on two file descriptors. The Seed decides. The order of an
// owner's messages is not affected.
func (w *World) Reorder(on bool) { w.fabric.Reorder(on) }

// RunOut makes every identifier and queue pair from now on fail with errno (EMFILE, ENOMEM), until
// RunOut(0). With ENOMEM all memory, queues and domains that are taken from a device fail as well.
func (w *World) RunOut(errno unix.Errno) *Fault { return w.fabric.RunOut(errno) }

// Disconnect breaks an identifier's connection, seen from both ends: Disconnected, with ECONNRESET
// on iWARP. On the embedded device messages that have arrived come first, also those that wait for
// their owner. Without a connection the test fails.
func (w *World) Disconnect(id *actor.PID) {
	w.t.Helper()
	i, ok := w.findID(id)
	if !ok {
		w.t.Fatalf("actortest: Disconnect: there is no identifier %v; identifiers:%s", id, w.listIDs())
	}
	if i.State != states.Connected && i.State != states.Accepting {
		w.t.Fatalf("actortest: Disconnect: %s has no connection, it is %v", id.Id, i.State)
	}
	w.fabric.Disconnect(i.ID)
}

// RemoveDevice pulls a device out of its machine: its identifiers get DeviceRemoval, their
// peers Disconnected.
func (w *World) RemoveDevice(name string) {
	w.t.Helper()
	p := w.devices[name]
	if p == nil || !p.in {
		w.t.Fatalf("actortest: RemoveDevice: there is no device %q", name)
	}
	p.in = false
	w.fabric.RemoveDevice(name)
}

// Name makes a host name resolve to addresses, in their order, on all machines. No addresses: the
// name does not exist. Other names are looked up on the computer that runs the test, which takes
// real time.
func (w *World) Name(name string, addrs ...string) { w.fabric.Name(name, addrs...) }

// AddDevice plugs in a device: one that was removed goes where it was, with the addresses it had
// if none are given; a new one goes into the machine that the test began with. Names and addresses
// that are taken panic.
func (w *World) AddDevice(name string, addrs ...string) {
	m := w.machines[0]
	if p := w.devices[name]; p != nil {
		m = p.m
		if len(addrs) == 0 {
			addrs = p.addrs
		}
	}
	w.plugIn(m, name, addrs)
}
