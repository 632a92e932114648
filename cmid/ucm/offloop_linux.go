package ucm

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// destroy destroys the identifier. Its events are not delivered from now on. If the kernel may
// wait, the destruction runs off the loop. If a command of the same identifier is under way there,
// the destruction starts when that has ended.
func (id *driverID) destroy() error {
	in := id.in
	in.removeDriverID(id)
	if id.waitsForPeer() {
		id.flushQP()
	}
	id.late = nil
	id.ending = &ended{reports: true}
	switch {
	case id.away != nil:
		id.lane.cancelJob(id.away)
		return cmid.ErrPending
	case in.lost != nil && id.qp == nil:
		return in.lost.giveBack(id)
	case id.phase == unconnected && id.qp == nil:
		return id.destroyResult(id.giveBack())
	}
	id.giveBackOffLoop()
	return cmid.ErrPending
}

// removeDriverID removes the identifier from the tables, so that its events are not delivered.
func (in *instance) removeDriverID(id *driverID) {
	delete(in.ids, id.h)
	if id.listening {
		in.listeners--
	}
	for _, g := range id.groups {
		delete(in.groups, g.h)
	}
}

// waitsForPeer reports whether the kernel uses the queue pair until the peer answers, as a connect
// on iWARP does. Such a queue pair is flushed when the identifier is destroyed, and destroyed
// after the identifier. Any other queue pair is destroyed before the identifier.
func (id *driverID) waitsForPeer() bool { return id.phase == half && id.isIWARP() }

// threadGroup returns the key of the calls that share threads with the identifier's.
func (id *driverID) threadGroup() any {
	if id.listener != 0 {
		return id.listener
	}
	return id.in
}

// giveBack executes DESTROY_ID. ENOENT counts as success: the identifier does not exist.
func (id *driverID) giveBack() error {
	if _, err := id.in.file.DestroyID(id.kid); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// destroyResult interprets DESTROY_ID's answer: the identifier is destroyed, or it will be when the
// channel is closed, or the kernel keeps it.
func (id *driverID) destroyResult(err error) error {
	in := id.in
	switch {
	case err == nil || in.closed: // then the file is, next
		return nil
	case in.lost != nil || in.failIfDenied(err):
		return in.lost.giveBack(id)
	}
	return &HeldError{IDs: []HeldID{id.keptBy("destroy_id")}, Err: err}
}

// keptBy names the identifier as one that the kernel has not released.
func (id *driverID) keptBy(doing string) HeldID {
	return HeldID{Handle: id.h, Local: id.local, Peer: id.peer, Doing: doing}
}

// giveBackOffLoop destroys the queue pair and the identifier. The kernel waits for their requests
// under way, for seconds if the peer's host has died. Until then the queue pair keeps its memory,
// completion queues and domain in use.
func (id *driverID) giveBackOffLoop() {
	in, last := id.in, id.waitsForPeer()
	var qp verbs.Later
	if id.qp != nil {
		qp = id.qp.DestroyLater()
	}
	var went error
	destroyQP := func() {
		if qp.Wait != nil {
			went = qp.Wait()
		}
	}
	in.offLoop(&in.lanes.destroys, id, "destroy_id", func() error {
		if !last {
			destroyQP()
		}
		err := id.giveBack()
		if last {
			destroyQP()
		}
		return err
	}, func(err error) {
		if qp.End != nil {
			_ = qp.End(went) // its owner may have destroyed it already
		}
		id.qp = nil
		_ = in.checkError(went)
		if err = id.destroyResult(err); !errors.Is(err, cmid.ErrPending) {
			id.reportDestroyed(err)
		}
	})
}

// offLoop lets l execute call, which may wait in the kernel. Then it calls then on the loop with
// call's error.
func (in *instance) offLoop(l *lane, id *driverID, doing string, call func() error, then func(error)) *job {
	in.busy[id] = doing
	in.mail.countCall()
	j := &job{group: id.threadGroup(), peer: id.peer.Source(), call: call, refusable: l != &in.lanes.destroys, then: func(err error) {
		in.mail.putResult(func() {
			delete(in.busy, id)
			then(err)
		})
	}}
	l.runJob(j)
	return j
}

// offLoop executes a command that may wait in the kernel. after gets its error, and returns the
// error to report.
func (id *driverID) offLoop(l *lane, doing string, call func() error, after func(error) error) error {
	id.callOffLoop(l, doing, call, func(err error) (report func()) {
		err = after(err)
		return func() { id.in.up.Done(id.h, err) }
	})
	return cmid.ErrPending
}

// callOffLoop executes a call that may wait in the kernel, one at a time for each identifier. The
// identifier's events and its destruction wait until that call has ended. After the destruction
// nothing is reported.
func (id *driverID) callOffLoop(l *lane, doing string, call func() error, after func(error) (report func())) {
	id.lane = l
	id.away = id.in.offLoop(l, id, doing, call, func(err error) {
		id.away = nil
		report := after(id.in.checkError(err))
		if id.ending != nil {
			id.giveBackOffLoop()
			return
		}
		report()
		id.deliverLate()
	})
}

// deliverLate delivers the events that have waited for a command's answer.
func (id *driverID) deliverLate() {
	for len(id.late) > 0 && id.away == nil {
		deliver := id.late[0]
		id.late = id.late[1:]
		deliver()
	}
}
