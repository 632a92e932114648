package network

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
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
	stray int            // answers in flight that belong to no socket
	hangs bool           // there is a middlebox before the machine
	known map[tuple]bool // connections whose first attempt ended at a middlebox
}

// Machine adds a machine. Each address comes with the length of its network's prefix: it reaches
// the addresses in that network, if another machine has them. Machines that may reach one another
// this way share a link. It panics if another machine has one of the addresses.
func (n *Network) Machine(name string, addrs ...netip.Prefix) *Machine {
	m := &Machine{net: n, name: name}
	m.removeSockets()
	n.machines = append(n.machines, m)
	for _, a := range addrs {
		m.AddAddr(a)
	}
	return m
}

// removeSockets removes all sockets.
func (m *Machine) removeSockets() {
	m.ports = make(map[uint16][]*sock)
	m.conns = make(map[tuple]*sock)
	m.waits = waits{table: make(map[tuple]*timeWait)}
}

// Addrs returns the machine's addresses, without those of loopback.
func (m *Machine) Addrs() []netip.Prefix { return slices.Clone(m.addrs) }

// AddAddr gives the machine an address. It panics if another machine has it.
func (m *Machine) AddAddr(p netip.Prefix) {
	ip := p.Addr()
	if owner := m.net.owners[ip]; owner != nil && owner != m {
		panic(fmt.Sprintf("network: %v belongs to %s already", ip, owner.name))
	}
	if !m.hasAddr(ip) {
		m.net.owners[ip] = m
		m.addrs = append(m.addrs, p)
	}
}

// RemoveAddr removes an address from the machine. Sockets keep it, but nothing is sent or received.
func (m *Machine) RemoveAddr(ip netip.Addr) {
	if !ip.IsLoopback() && m.hasAddr(ip) {
		delete(m.net.owners, ip)
		m.addrs = slices.DeleteFunc(m.addrs, func(p netip.Prefix) bool { return p.Addr() == ip })
	}
}

// hasAddr reports whether ip is an address of the machine.
func (m *Machine) hasAddr(ip netip.Addr) bool {
	if ip.IsLoopback() {
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

func (m *Machine) now() time.Time { return m.net.cfg.Now() }
