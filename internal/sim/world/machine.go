package world

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/internal/sim/network"
)

// Machine is a computer with addresses and one RDMA device, named like the machine.
type Machine struct {
	w     *World
	name  string
	addrs []string
	host  *cmidtest.Host   // for a twin
	net   *network.Machine // for the embedded device
	off   bool
	out   bool // a twin's device was removed
	procs []*Process
	stall time.Duration // how long it is stopped after accepting a connection; 0: not at all
}

// Machine adds a machine. Addresses are like "10.0.0.1/24".
func (w *World) Machine(name string, addrs ...string) *Machine {
	m := &Machine{w: w, name: name, addrs: addrs}
	w.machines = append(w.machines, m)
	if w.fabric != nil {
		m.host = w.fabric.Host(name)
		m.host.AddDevice(name, addrs...)
		return m
	}
	var all []netip.Prefix
	for _, a := range addrs {
		all = append(all, netip.MustParsePrefix(a))
	}
	m.net = w.net.Machine(name, all...)
	return m
}

// Name returns the machine's name.
func (m *Machine) Name() string { return m.name }

// Processes returns the programs of the machine.
func (m *Machine) Processes() []*Process { return m.procs }

// PowerOff stops the machine immediately. Its processes end, without notice to peers.
func (m *Machine) PowerOff() {
	if m.off {
		return
	}
	m.off = true
	for _, p := range m.procs {
		p.dead = true
	}
	if m.net != nil {
		m.net.PowerOff()
		m.procs = nil
		return
	}
	for _, other := range m.w.machines {
		if other != m {
			m.w.fabric.Cut(m.host, other.host).Optional()
		}
	}
	m.crashPrograms()
}

// PowerOn starts the machine again, without processes.
func (m *Machine) PowerOn() {
	if !m.off {
		return
	}
	m.off = false
	if m.net != nil {
		m.net.PowerOn()
		return
	}
	for _, other := range m.w.machines {
		if other != m && !other.off {
			m.w.fabric.Heal(m.host, other.host)
		}
	}
}

// crashPrograms ends all programs of a twin's host. Its devices leave with them.
func (m *Machine) crashPrograms() {
	m.host.Crash()
	m.procs, m.out = nil, true
}

// RemoveDevice removes a twin's device from its machine, as if the adapter were pulled. The
// embedded device cannot be removed: its machine loses its addresses.
func (m *Machine) RemoveDevice() {
	if m.out {
		return
	}
	m.out = true
	if m.net == nil {
		m.w.fabric.RemoveDevice(m.name)
		return
	}
	for _, a := range m.addrs {
		m.net.RemoveAddr(netip.MustParsePrefix(a).Addr())
	}
}

// AddDevice ends RemoveDevice.
func (m *Machine) AddDevice() {
	if !m.out {
		return
	}
	m.out = false
	if m.net == nil {
		m.host.AddDevice(m.name, m.addrs...)
		return
	}
	for _, a := range m.addrs {
		m.net.AddAddr(netip.MustParsePrefix(a))
	}
}

// Cut cuts the link between two machines: what they send to each other is lost, and sent again by
// the transport. With oneWay only messages from m are lost; twins have no such links, and are cut
// in both directions.
func (m *Machine) Cut(other *Machine, oneWay bool) {
	if m.net == nil {
		m.w.fabric.Cut(m.host, other.host).Optional()
		return
	}
	m.w.net.SetDown(m.net, other.net, true)
	if !oneWay {
		m.w.net.SetDown(other.net, m.net, true)
	}
}

// Heal ends Cut.
func (m *Machine) Heal(other *Machine) {
	if m.net == nil {
		if !m.off && !other.off {
			m.w.fabric.Heal(m.host, other.host)
		}
		return
	}
	m.w.net.SetDown(m.net, other.net, false)
	m.w.net.SetDown(other.net, m.net, false)
}

// Reset breaks one of the machine's connections, which r chooses, as a middlebox does. It does
// nothing if there is none, or on twins.
func (m *Machine) Reset(r *rand.Rand) {
	if m.net == nil {
		return
	}
	if all := m.net.Connections(); len(all) > 0 {
		all[r.IntN(len(all))].Reset()
	}
}

// Connected reports whether there is a connection that Reset may end.
func (m *Machine) Connected() bool { return m.net != nil && len(m.net.Connections()) > 0 }

// HangUp makes a middlebox accept each first connection to this machine, and close it when bytes
// arrive, or ends that. The embedded device then connects again. It does nothing on twins.
func (m *Machine) HangUp(on bool) {
	if m.net != nil {
		m.net.HangUp(on)
	}
}

// Freeze stops all processes of the machine, as SIGSTOP does.
func (m *Machine) Freeze() {
	for _, p := range m.procs {
		p.Freeze()
	}
}

// Thaw ends Freeze.
func (m *Machine) Thaw() {
	for _, p := range m.procs {
		p.Thaw()
	}
}

// FreezeOnAccept stops all processes of the machine for d when one of them next accepts a TCP
// connection, in the middle of its set-up. 0 ends that. It does nothing on twins.
func (m *Machine) FreezeOnAccept(d time.Duration) { m.stall = d }

// handleAccepted handles that a loop has accepted a connection. Its turn continues to the end.
func (w *World) handleAccepted(on *network.Machine) {
	for _, m := range w.machines {
		if m.net == on && m.stall > 0 {
			w.Trace("%s stands still for %v", m.name, m.stall)
			m.Freeze()
			w.After(m.stall, m.name+" goes on", m.Thaw)
			m.stall = 0
		}
	}
}

// Off reports whether the machine has no power.
func (m *Machine) Off() bool { return m.off }

// Latency sets how long messages take between all machines from now on: at least d, and up to
// jitter more. loss is the share of segments that are lost, and so arrive later; twins lose none.
func (w *World) Latency(d, jitter time.Duration, loss float64) {
	if w.fabric != nil {
		w.fabric.Delay(d)
		return
	}
	for _, a := range w.machines {
		for _, b := range w.machines {
			if a != b {
				l := w.net.Link(a.net, b.net)
				l.Delay, l.Jitter, l.Loss = d, jitter, loss
				w.net.SetLink(a.net, b.net, l)
			}
		}
	}
}

// Reorder lets a twin's completions and events overtake one another.
func (w *World) Reorder(on bool) {
	if w.fabric != nil {
		w.fabric.Reorder(on)
	}
}

// Scarce makes system calls fail from now on, with that probability, as they do when memory or
// descriptors are short. On twins, creating objects on a device fails for lack of memory instead.
func (w *World) Scarce(rate float64) {
	w.scarce = rate
	if w.fabric != nil {
		errno := unix.Errno(0)
		if rate > 0 {
			errno = unix.ENOMEM
		}
		w.fabric.RunShort(errno, rate).Optional()
	}
}

// drawErrno decides whether a system call fails.
func (w *World) drawErrno(call string) unix.Errno {
	if w.scarce == 0 || w.errnos.Float64() >= w.scarce {
		return 0
	}
	all := network.Errnos(call)
	if len(all) == 0 {
		return 0
	}
	errno := all[w.errnos.IntN(len(all))]
	w.Trace("%s fails with %v", call, errno)
	return errno
}
