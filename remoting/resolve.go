package remoting

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"runtime"
	"weak"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// nodeID is what stands for a name where a number is needed: the beginning of its SHA-256.
func nodeID(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:])
}

// resolve is the actor system's AddressResolver: it answers for every foreign address.
func (n *Node) resolve(pid *actor.PID) (actor.Process, bool) {
	if !sayable(pid.Address) {
		return nil, false
	}
	return n.process(pid.Address), true
}

// process is the process of an address. It lasts as long as a PID has it, or a peer.
func (n *Node) process(addr string) *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.processes[addr].Value(); p != nil {
		return p
	}
	p := &process{node: n, addr: addr}
	n.processes[addr] = weak.Make(p)
	// Until p is gone, Go keeps what the cleanup has. If that were the node, and with it the actor
	// system, whose actors have PIDs of that address, nothing of all that would ever go.
	runtime.AddCleanup(p, forget, entry{weak.Make(n), addr})
	return p
}

// entry is a node's entry of an address.
type entry struct {
	node weak.Pointer[Node]
	addr string
}

func forget(e entry) {
	if n := e.node.Value(); n != nil {
		n.forget(e.addr)
	}
}

// forget drops the entry of an address whose process is gone, unless it has another one by now.
func (n *Node) forget(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.processes[addr].Value() == nil {
		delete(n.processes, addr)
	}
}

// open is the peer that takes messages for the address, which is made if there is none.
func (p *process) open() (*peer, error) {
	if p.node.down.Load() {
		return nil, ErrShutdown
	}
	if to := p.peer.Load(); to != nil && !to.over.Load() {
		return to, nil
	}
	to, err := p.node.open(p.addr)
	if err == nil {
		p.peer.Store(to)
	}
	return to, err
}

// current is the peer at the address; nil: there is none.
func (p *process) current() *peer {
	if to := p.peer.Load(); to != nil && !to.over.Load() {
		return to
	}
	to := p.node.find(nodeID(p.addr))
	if to != nil {
		p.peer.Store(to)
	}
	return to
}

// find is the peer with that id; nil: there is none.
func (n *Node) find(id uint64) *peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers[id]
}

// open is the peer of that name, which is made if there is none.
func (n *Node) open(name string) (*peer, error) {
	if name == "" || n.local(name) || len(name) > frame.MaxName {
		return nil, ErrNotRemote
	}
	id := nodeID(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch p := n.peers[id]; {
	case n.closing:
		return nil, ErrShutdown
	case p != nil:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.name == "" {
			p.name = name // it has connected, and not said its name yet
		}
		return p, nil
	case len(n.peers) >= n.cfg.Peers || n.unconnected.Load() >= int64(n.half()):
		return nil, ErrTooManyPeers
	}
	return n.newLinkLocked(id, name, netip.Addr{}), nil
}
