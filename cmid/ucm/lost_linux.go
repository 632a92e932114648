package ucm

import (
	"errors"
	"slices"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// failChannel gives the channel up. It may be called in the middle of a command, so owners are
// notified later, from the loop's queue.
func (in *instance) failChannel(err error) {
	if in.lost != nil || in.closed {
		return
	}
	l := &loss{in: in, err: err}
	in.lost = l
	if in.reg != nil {
		_ = in.reg.Remove() // it would stay readable
	}
	in.mail.countCall()
	in.lanes.destroys.runJob(&job{
		group: in, call: in.file.Close, then: func(error) { in.mail.putResult(func() { l.closed = true }) },
	})
	_ = in.loop.Post(l.reportRemoval) // refused when the loop ends, and events no longer matter
}

// reportRemoval reports the removal to every identifier.
func (l *loss) reportRemoval() {
	in := l.in
	for _, d := range slices.Clone(in.devices) {
		in.removeDevice(d)
	}
	for h, id := range in.ids {
		if in.closed {
			return
		}
		id.phase = removed
		in.event = cmid.DriverEvent{Kind: states.KindDeviceRemoval, Err: l.err}
		in.up.Event(h, &in.event)
	}
}

// giveBack gives an identifier back with the file.
func (l *loss) giveBack(id *driverID) error {
	if l.isFileUnused() {
		return nil
	}
	l.in.busy[id] = "destroy_id"
	l.waiting = append(l.waiting, id)
	return cmid.ErrPending
}

// isFileUnused reports whether the file is unused.
func (l *loss) isFileUnused() bool { return l.closed && !l.in.mail.expectsResult() }

// reportWaiting reports the end of the identifiers that have waited for the file to be closed.
func (l *loss) reportWaiting() {
	if l == nil || !l.isFileUnused() {
		return
	}
	list := l.waiting
	l.waiting = nil
	for _, id := range list {
		delete(l.in.busy, id)
		id.reportDestroyed(nil)
	}
}

// checkError gives the channel up if err shows that the kernel takes no commands from this process,
// and returns it.
func (in *instance) checkError(err error) error {
	in.failIfDenied(err)
	return err
}

func (in *instance) failIfDenied(err error) bool {
	if err == nil {
		return false
	}
	var c *verbs.CredentialsError
	if !errors.As(err, &c) {
		return false
	}
	in.failChannel(err)
	return true
}

// reportDestroyed reports that the kernel has destroyed the identifier, or why it has not.
func (id *driverID) reportDestroyed(err error) {
	if id.ending.reports && !id.in.closed {
		id.in.up.Done(id.h, err)
	}
}
