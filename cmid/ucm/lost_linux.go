package ucm

import (
	"errors"
	"slices"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// loss is the end of a channel that the kernel takes no commands for any more. Its file is closed,
// which gives back everything that was made on it; a command could not. To its owners every device
// has gone.
type loss struct {
	in      *instance
	err     error
	closed  bool     // the file: but calls that are under way still hold it
	waiting []*ident // destroyed, and given back when nobody holds the file
}

// lose gives the channel up. It may be called in the middle of a command: its owners are told
// afterwards.
func (in *instance) lose(err error) {
	if in.lost != nil || in.closed {
		return
	}
	l := &loss{in: in, err: err}
	in.lost = l
	if in.reg != nil {
		_ = in.reg.Remove() // it would stay readable
	}
	in.mail.start()
	in.lanes.destroys.run(&job{
		group: in, call: in.file.Close, then: func(error) { in.mail.put(func() { l.closed = true }) },
	})
	_ = in.loop.Post(l.tell) // refused when the loop ends, and nobody is told any more
}

// tell tells every identifier.
func (l *loss) tell() {
	in := l.in
	for _, d := range slices.Clone(in.devices) {
		in.drop(d)
	}
	for h, id := range in.ids {
		if in.closed {
			return
		}
		id.phase = removed
		in.told = cmid.DriverEvent{Kind: states.KindDeviceRemoval, Err: l.err}
		in.up.Event(h, &in.told)
	}
}

// giveBack gives an identifier back with the file.
func (l *loss) giveBack(id *ident) error {
	if l.over() {
		return nil
	}
	l.in.busy[id] = "destroy_id"
	l.waiting = append(l.waiting, id)
	return cmid.ErrPending
}

// over says that nobody holds the file.
func (l *loss) over() bool { return l.closed && !l.in.mail.expects() }

// settle tells the end of those that have waited for it.
func (l *loss) settle() {
	if l == nil || !l.over() {
		return
	}
	list := l.waiting
	l.waiting = nil
	for _, id := range list {
		delete(l.in.busy, id)
		id.destroyed(nil)
	}
}

// checked gives the channel up if err says that the kernel takes no commands from this process, and
// returns it.
func (in *instance) checked(err error) error {
	in.denied(err)
	return err
}

func (in *instance) denied(err error) bool {
	if err == nil {
		return false
	}
	var c *verbs.CredentialsError
	if !errors.As(err, &c) {
		return false
	}
	in.lose(err)
	return true
}
