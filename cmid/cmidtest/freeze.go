package cmidtest

import (
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// Freeze stops the host's programs, as SIGSTOP does. A loop that has opened the host's Driver ends
// what it is doing, then runs nothing any more, and its program gets no events.
//
// The machine goes on. On InfiniBand, and on iWARP as the kernel plays it, the device puts what
// comes into the receives that are posted, acknowledges it and answers Reads, and the connection
// manager answers others. With Config.Embedded there is only TCP: it takes what comes, and nobody
// reads it. Timers stand still, the device's too.
//
// The loops must run by themselves (Loop.Start, Loop.Run), and time must be the time package's. A
// program that opens the Driver afterwards is not frozen. Freezing what is frozen does nothing.
func (h *Host) Freeze() {
	for _, in := range h.programs() {
		in.freeze()
	}
}

// Thaw ends Freeze. Events that were due are delivered, in order. Crashed programs stay as they
// are.
func (h *Host) Thaw() {
	for _, in := range h.programs() {
		in.thaw(false)
	}
}

// Crash kills the host's programs, as SIGKILL does: nothing of them runs any more, and the kernel
// closes what they had. Peers get what a kernel sends. On iWARP it is the end of the stream, and a
// reset if something has come that a frozen program had not read. On InfiniBand it is a disconnect
// request. Requests are rejected, and nobody listens any more. The programs themselves send
// nothing. A machine that loses its power sends nothing at all: for that, Cut its links first.
//
// The host's devices are gone from the Fabric, so that AddDevice can make others with the same
// names and addresses for the host's next program. The loops stand still until Unwind. As for
// Freeze, they must run by themselves.
func (h *Host) Crash() {
	h.f.mu.Lock()
	for len(h.devices) > 0 {
		h.devices[0].removeLocked()
	}
	h.f.mu.Unlock()
	for _, in := range h.programs() {
		in.freeze()
		in.kill()
	}
}

// Unwind has the loops of crashed programs go on, so that a test can shut them down and look for
// what is left. The programs find that their devices were removed.
func (h *Host) Unwind() {
	for _, in := range h.programs() {
		in.thaw(true)
	}
}

// programs are the instances that have opened the host's Driver.
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
	if in.loop.Post(func() { in.stand(i) }) == nil { // it fails when the program is ending
		in.box.ice = i
	}
}

// thaw ends freeze: with dead for a program that has crashed, without it for one that has not.
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

// stand blocks the loop, and does what the machine does without the program.
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

// goOn delivers to a program that was frozen what has happened.
func (in *instance) goOn() {
	in.frozen = false
	in.notifyCompletions()
	in.deliverKept()
	for len(in.suspended) > 0 && !in.closed {
		fn := in.suspended[0]
		in.suspended = in.suspended[1:]
		fn()
	}
	for _, id := range in.sorted() {
		if id.qp != nil {
			id.qp.retryLater() // its program may have receives for what waits
		}
	}
}

// closeAll does what the kernel does for a program that was killed. If the program ever goes on, it
// finds its device removed.
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
			id.state = states.Timewait // nothing more is sent
		}
		id.removeDevice()
	}
}
