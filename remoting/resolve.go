package remoting

import (
	"runtime"
	"sync"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
)

// addresses are the foreign addresses that PIDs have, each with its process.
type addresses struct {
	roster    *roster
	mu        sync.Mutex
	processes map[string]weak.Pointer[process]
}

// resolvePID implements the actor system's AddressResolver: it answers for every foreign address.
func (a *addresses) resolvePID(pid *actor.PID) (actor.Process, bool) {
	if !fitsFrame(pid.Address) {
		return nil, false
	}
	return a.processOf(pid.Address), true
}

// processOf returns the process of an address. It lasts as long as a PID has it, or a peer.
func (a *addresses) processOf(addr string) *process {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.processes[addr].Value(); p != nil {
		return p
	}
	p := &process{roster: a.roster, addr: addr}
	a.processes[addr] = weak.Make(p)
	// Go keeps the cleanup's argument until p is gone. If that were the node, and with it the actor
	// system, whose actors have PIDs of that address, nothing of all that would ever go.
	runtime.AddCleanup(p, forgetEntry, entry{weak.Make(a), addr})
	return p
}

// entry is the entry of an address.
type entry struct {
	in   weak.Pointer[addresses]
	addr string
}

func forgetEntry(e entry) {
	if a := e.in.Value(); a != nil {
		a.forgetAddr(e.addr)
	}
}

// forgetAddr removes the entry of an address whose process is gone, unless it has a new one.
func (a *addresses) forgetAddr(addr string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.processes[addr].Value() == nil {
		delete(a.processes, addr)
	}
}
