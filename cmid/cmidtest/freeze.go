package cmidtest

import (
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// Freeze stops the host's programs, as SIGSTOP does: nothing on a loop that has opened the host's
// Driver runs any more, once it has finished what it is at, and the program is told nothing. The
// machine goes on. On InfiniBand, and on iWARP as the kernel plays it, its device takes what comes
// into the receives that are posted, acknowledges, and answers Reads, and its connection manager
// speaks to others. With Config.Embedded there is only TCP, which takes what comes and has nobody
// read it. Timers stand still, the device's too.
//
// The loops must run by themselves (Loop.Start, Loop.Run), and time must be the time package's. A
// program that opens the Driver afterwards is not frozen. Freezing what is frozen does nothing.
func (h *Host) Freeze() {
	for _, in := range h.programs() {
		in.freeze()
	}
}

// Thaw ends Freeze: what was to be told is told, in order. Crashed programs stay as they are.
func (h *Host) Thaw() {
	for _, in := range h.programs() {
		in.thaw(false)
	}
}

// Crash kills the host's programs, as SIGKILL does: nothing of them runs any more, and the kernel
// closes what they had. Peers are told what a kernel says: on iWARP the end of the stream (a reset,
// where something came that a frozen program had not read), on InfiniBand a disconnect request,
// requests are rejected, and nobody listens any more. Nothing else is said: no program says
// goodbye. A machine that loses its power says nothing at all: Cut its links first.
//
// The host's devices are gone from the Fabric, so that the next program can be given devices of the
// same names and addresses, on the same Host. The loops stand still until Unwind. As for Freeze,
// they must run by themselves.
func (h *Host) Crash() {
	h.f.mu.Lock()
	for len(h.devices) > 0 {
		h.devices[0].remove()
	}
	h.f.mu.Unlock()
	for _, in := range h.programs() {
		in.freeze()
		in.kill()
	}
}

// Unwind has the loops of crashed programs go on, so that who made them can shut them down and look
// for what is left: they find that their devices have been removed.
func (h *Host) Unwind() {
	for _, in := range h.programs() {
		in.thaw(true)
	}
}

// programs is who has opened the host's Driver.
func (h *Host) programs() []*instance {
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
	if in.loop.Post(func() { in.stand(i) }) == nil { // else the program is ending
		in.box.ice = i
	}
}

// thaw ends freeze for a program that has crashed, or for one that has not.
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

// stand holds the loop, and does what the machine does without the program.
func (in *instance) stand(i *ice) {
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
		select {
		case <-i.came:
		case <-late.C:
		case <-i.killed:
			in.closeAll()
			works = true // now the kernel answers
		case <-i.thawed:
			in.goOn()
			return
		}
	}
}

// goOn tells a program that was frozen what has happened.
func (in *instance) goOn() {
	in.frozen = false
	in.tellCompletions()
	in.tellHeld()
	for len(in.untold) > 0 && !in.closed {
		fn := in.untold[0]
		in.untold = in.untold[1:]
		fn()
	}
	for _, id := range in.sorted() {
		if id.qp != nil {
			id.qp.retryLater() // its program may have receives for what waits
		}
	}
}

// closeAll is what the kernel does for a program that was killed. The program's own part, if it
// ever goes on, finds its device removed.
func (in *instance) closeAll() {
	unread := make(map[endpoint]bool)
	if in.f.embedded { // nobody has read what has come
		in.box.mu.Lock()
		for i := range in.box.in {
			unread[in.box.in[i].to] = true
		}
		in.box.mu.Unlock()
	}
	for _, id := range in.sorted() {
		if id.state == states.Removed {
			continue
		}
		if id.state == states.Connected && unread[id.self()] {
			id.say(MsgDREQ, connReset)
			id.state = states.Timewait // it has said so
		}
		id.removeDevice()
	}
}
