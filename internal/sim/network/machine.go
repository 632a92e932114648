package network

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Indexes of a machine's interfaces.
const (
	loopbackIndex = 1 // lo
	networkIndex  = 2 // eth0
)

// Machine is one computer. All its addresses but those of loopback belong to one interface, eth0.
type Machine struct {
	net   *Network
	name  string
	addrs []netip.Prefix // in the order in which they were added
	off   bool
	procs []*Process
	files int // open descriptors of all processes
	ports map[uint16][]*sock
	conns map[tuple]*sock
	waits waits
	stray int            // answers on their way that belong to no socket
	known map[tuple]bool // what the middlebox before the machine has seen; nil: there is none
}

// tuple is what distinguishes a machine's connections. The addresses have no zones, and IPv4
// addresses are not mapped.
type tuple struct{ local, remote netip.AddrPort }

// Machine adds a machine. Each address comes with the length of its network's prefix: it reaches
// the addresses in that network, if another machine has them. Machines that may reach one another
// this way share a link. It panics if another machine has one of the addresses.
func (n *Network) Machine(name string, addrs ...netip.Prefix) *Machine {
	m := &Machine{net: n, name: name}
	m.clear()
	n.machines = append(n.machines, m)
	for _, a := range addrs {
		m.AddAddr(a)
	}
	return m
}

// clear forgets all sockets.
func (m *Machine) clear() {
	m.ports = make(map[uint16][]*sock)
	m.conns = make(map[tuple]*sock)
	m.waits = waits{table: make(map[tuple]*timeWait)}
}

// Name is the name that the machine was made with.
func (m *Machine) Name() string { return m.name }

// Addrs is the machine's addresses, without those of loopback.
func (m *Machine) Addrs() []netip.Prefix { return slices.Clone(m.addrs) }

// AddAddr gives the machine an address. It panics if another machine has it.
func (m *Machine) AddAddr(p netip.Prefix) {
	ip := p.Addr()
	if owner := m.net.owners[ip]; owner != nil && owner != m {
		panic(fmt.Sprintf("network: %v belongs to %s already", ip, owner.name))
	}
	if !m.has(ip) {
		m.net.owners[ip] = m
		m.addrs = append(m.addrs, p)
	}
}

// RemoveAddr takes an address from the machine. Sockets keep it, but nothing goes or comes.
func (m *Machine) RemoveAddr(ip netip.Addr) {
	if !isLoopback(ip) && m.has(ip) {
		delete(m.net.owners, ip)
		m.addrs = slices.DeleteFunc(m.addrs, func(p netip.Prefix) bool { return p.Addr() == ip })
	}
}

// has says whether ip is an address of the machine.
func (m *Machine) has(ip netip.Addr) bool {
	if isLoopback(ip) {
		return true
	}
	ip = ip.WithZone("")
	for _, p := range m.addrs {
		if p.Addr() == ip {
			return true
		}
	}
	return false
}

func isLoopback(ip netip.Addr) bool { return ip.IsLoopback() }

// PowerOff stops the machine at once. Its peers are not notified: what they send gets no answer.
// All its processes have ended.
func (m *Machine) PowerOff() {
	m.off = true
	for _, p := range m.procs {
		for _, s := range p.files {
			if s != nil {
				s.vanish()
			}
		}
		p.end()
	}
	for _, list := range m.ports {
		for _, s := range list {
			s.vanish()
		}
	}
	for _, s := range m.conns {
		s.vanish()
	}
	m.procs = nil
	m.clear()
}

// PowerOn starts the machine again, with its addresses and without processes. It answers segments
// of the connections that it had with resets.
func (m *Machine) PowerOn() { m.off = false }

// Off says whether the machine is switched off.
func (m *Machine) Off() bool { return m.off }

// Left describes the open descriptors of all processes.
func (m *Machine) Left() (left []string) {
	for _, p := range m.procs {
		for fd, s := range p.files {
			if s != nil {
				left = append(left, fmt.Sprintf("%s: fd %d: %v", m.name, fd, s))
			}
		}
	}
	return left
}

// Connection is one end of a connection.
type Connection struct {
	Local, Peer netip.AddrPort
	sock        *sock
}

// Connections returns the connections of the machine's sockets that are established or being
// closed, sorted.
func (m *Machine) Connections() []Connection {
	var list []Connection
	for t, s := range m.conns {
		if s.state != stateSynSent && s.state != stateSynReceived {
			list = append(list, Connection{t.local, t.remote, s})
		}
	}
	slices.SortFunc(list, func(a, b Connection) int {
		if c := a.Local.Compare(b.Local); c != 0 {
			return c
		}
		return a.Peer.Compare(b.Peer)
	})
	return list
}

// Reset resets this end of the connection, as if somebody between the machines had sent a segment
// for it. The other end learns of it when it sends something.
func (c Connection) Reset() { c.sock.reset() }

// source returns the address that is used towards to. from is the socket's own, or unspecified.
// IPv6 lets a socket keep an address from which nothing arrives.
func (m *Machine) source(from, to netip.Addr) (netip.Addr, error) {
	chosen := !from.IsUnspecified()
	own := isLoopback(to) || m.has(to)
	best, routed := m.nearest(to)
	switch {
	case !own && !routed:
		return netip.Addr{}, unix.ENETUNREACH
	case chosen && to.Is4() && !m.has(from):
		return netip.Addr{}, unix.ENETUNREACH
	case chosen && to.Is4() && !own && isLoopback(from):
		return netip.Addr{}, unix.EINVAL
	case chosen:
		return from, nil
	case own && to.Is6():
		return to, nil
	case isLoopback(to):
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	return best.WithZone(to.Zone()), nil
}

// nearest returns the machine's first address in the smallest of its networks that has ip.
func (m *Machine) nearest(ip netip.Addr) (netip.Addr, bool) {
	var best netip.Prefix
	for _, p := range m.addrs {
		if p.Contains(ip.WithZone("")) && (!best.IsValid() || p.Bits() > best.Bits()) {
			best = p
		}
	}
	return best.Addr(), best.IsValid()
}

// broadcast says whether ip is the broadcast address of one of the machine's networks.
func (m *Machine) broadcast(ip netip.Addr) bool {
	if !ip.Is4() {
		return false
	}
	b := ip.As4()
	v := binary.BigEndian.Uint32(b[:])
	if v == math.MaxUint32 || v == 0x7fffffff {
		return true
	}
	for _, p := range m.addrs {
		if p.Addr().Is4() && p.Bits() < 31 && p.Contains(ip) {
			if host := uint32(1)<<(32-p.Bits()) - 1; v&host == host {
				return true
			}
		}
	}
	return false
}

// fail asks whether a call fails although its caller did nothing wrong.
func (m *Machine) fail(call string) error {
	if f := m.net.cfg.Fail; f != nil {
		if errno := f(m, call); errno != 0 {
			return errno
		}
	}
	return nil
}

func (m *Machine) now() time.Time { return m.net.cfg.Now() }
