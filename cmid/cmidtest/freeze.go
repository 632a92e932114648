package cmidtest

import (
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// Freeze stops the host's programs, as SIGSTOP does. A loop that has opened the host's Driver
// finishes its current work, and then runs nothing until Thaw. Its program gets no events.
//
// The machine goes on. On InfiniBand, and on iWARP in the kernel, the device still puts messages
// into posted receives, acknowledges them and answers Reads. The connection manager still answers
// its peers. With Config.Embedded only TCP goes on. It accepts bytes, which stay unread. Timers
// stand still, and so do the device's.
//
// The loops must run on goroutines (Loop.Start, Loop.Run), and time must be that of package time.
// A program that opens the Driver afterwards is not frozen. To freeze a frozen host does nothing.
func (h *Host) Freeze() {
	for _, in := range h.openInstances() {
		in.freeze()
	}
}

// Thaw ends the effect of Freeze. Events that were due are delivered, in order. Thaw does not
// affect crashed programs.
func (h *Host) Thaw() {
	for _, in := range h.openInstances() {
		in.thaw(false)
	}
}

// Crash kills the host's programs, as SIGKILL does. The programs run no further and send nothing,
// and the kernel closes their objects. Peers get the messages of a kernel in that case. On iWARP
// that is the end of the stream, or a reset if a frozen program had not read everything. On
// InfiniBand it is a disconnect request. Open requests are rejected, and the listeners are gone. A
// machine that loses its power sends nothing at all. To imitate that, Cut its links first.
//
// Crash removes the host's devices from the Fabric. So AddDevice can make others with the same
// names and addresses for the host's next program. The loops stand still until Unwind. As for
// Freeze, they must run on goroutines.
func (h *Host) Crash() {
	h.f.mu.Lock()
	for len(h.devices) > 0 {
		h.devices[0].removeLocked()
	}
	h.f.mu.Unlock()
	for _, in := range h.openInstances() {
		in.freeze()
		in.kill()
	}
}

// Unwind lets the loops of crashed programs go on, so that a test can shut them down and look for
// leaks. The programs find that their devices were removed.
func (h *Host) Unwind() {
	for _, in := range h.openInstances() {
		in.thaw(true)
	}
}

// openInstances returns the instances that have opened the host's Driver.
func (h *Host) openInstances() []*instance {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	return slices.Clone(h.instances)
}

func (in *instance) freeze() {
	in.box.mu.Lock()
	defer in.box.mu.Unlock()
	if in.box.ice != nil || in.box.closed {
		return
	}
	i := &ice{thawed: make(chan struct{}), came: make(chan struct{}, 1), killed: make(chan struct{}, 1)}
	if in.loop.Post(func() { in.standFrozen(i) }) == nil { // it fails when the program is ending
		in.box.ice = i
	}
}

// thaw lets a frozen loop go on. dead selects loops of crashed programs; otherwise thaw affects
// only the others.
func (in *instance) thaw(dead bool) {
	in.box.mu.Lock()
	defer in.box.mu.Unlock()
	if i := in.box.ice; i != nil && i.dead == dead {
		close(i.thawed)
		in.box.ice = nil
	}
}

// kill ends a frozen program.
func (in *instance) kill() {
	in.box.mu.Lock()
	defer in.box.mu.Unlock()
	if i := in.box.ice; i != nil && !i.dead {
		i.dead = true
		i.killed <- struct{}{}
	}
}

// standFrozen blocks the loop, and acts as the machine without the program.
func (in *instance) standFrozen(i *ice) {
	in.frozen = true
	late := time.NewTimer(0)
	defer late.Stop()
	for works := !in.f.embedded; ; {
		if works {
			in.takeIn()
			in.takeLate()
			if len(in.late) > 0 {
				late.Reset(time.Until(in.late[0].due))
			}
		}
		killed := false
		select {
		case <-i.came:
		case <-late.C:
		case <-i.killed:
			killed = true
		case <-i.thawed:
		}
		in.f.scheduler.Resume()
		// whatever select has picked, all that has come counts, and in this order
		takeIfReady(i.came)
		takeIfReady(late.C)
		if killed || takeIfReady(i.killed) {
			in.closeAll()
			works = true // now the kernel answers
		}
		if takeIfReady(i.thawed) {
			in.goOn()
			return
		}
	}
}

// takeIfReady reports whether there was something in c, and takes it.
func takeIfReady[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// goOn delivers the events of the freeze to a thawed program.
func (in *instance) goOn() {
	in.frozen = false
	in.notifyCompletions()
	in.deliverKept()
	for len(in.suspended) > 0 && !in.closed {
		fn := in.suspended[0]
		in.suspended = in.suspended[1:]
		fn()
	}
	in.serveWaiting()
}

// closeAll acts as the kernel after a program was killed. If the program ever goes on, it finds
// its device removed.
func (in *instance) closeAll() {
	unread := make(map[endpoint]bool)
	if in.f.embedded { // arrived messages are unread
		in.box.mu.Lock()
		for i := range in.box.in {
			unread[in.box.in[i].to] = true
		}
		in.box.mu.Unlock()
	}
	for _, id := range in.sortedDriverIDs() {
		if id.state == states.Removed {
			continue
		}
		if id.state == states.Connected && unread[id.self] {
			id.cm.sendStatus(MsgDREQ, connReset)
			id.state = states.Timewait // nothing more is sent
		}
		id.removeDevice()
	}
}
