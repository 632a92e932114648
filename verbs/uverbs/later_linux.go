package uverbs

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// leaving is a destruction under way.
type leaving struct {
	quiet uint64        // what the device had taken when it began
	back  chan struct{} // closed when Wait has returned
	err   error         // what it has returned
}

// never is a call that fails before it begins.
func never(err error) verbs.Later {
	return verbs.Later{Wait: func() error { return err }, End: func(error) error { return err }}
}

// ModifyLater is Modify, for a change that the kernel may take its time for: to RTR it looks for
// the peer's link address.
func (q *queuePair) ModifyLater(attr *verbs.QPAttr, mask verbs.QPAttrMask) verbs.Later {
	if err := q.there(); err != nil || mask == 0 {
		return never(err)
	}
	to, k, quiet := *attr, q.dev.k, q.quiet()
	request := modifyRequest(q.handle, attr, mask)
	q.changes++
	return verbs.Later{
		Wait: func() error {
			return k.aside(func(k *kernel) error { return tell(k, cmdModifyQP, request) })
		},
		End: func(err error) error {
			err = q.modified(&to, mask, quiet, err)
			if q.changes--; q.changes == 0 {
				q.tellEarly()
			}
			return err
		},
	}
}

// modified takes in what has come of a change.
func (q *queuePair) modified(to *verbs.QPAttr, mask verbs.QPAttrMask, quiet uint64, err error) error {
	switch {
	case err != nil:
		return q.unchanged(to, mask, err)
	case !q.gone && q.state != verbs.QPError: // else it has failed meanwhile
		q.changed(to, mask, quiet)
	}
	return nil
}

// DestroyLater is Destroy. The kernel destroys no queue pair that is attached to a multicast group,
// so it leaves those first; and it is flushed first, so that a message which is half received gives
// its receive back.
func (q *queuePair) DestroyLater() verbs.Later {
	if q.gone || q.leaving != nil {
		return never(nil)
	}
	d := q.dev
	if q.changes > 0 { // the kernel would refuse it, or change another one that has got its handle
		return never(fmt.Errorf("uverbs: %s: destroy_qp of %d, which is being modified: %w", d.name, q.num, unix.EBUSY))
	}
	l := &leaving{quiet: q.quiet(), back: make(chan struct{})}
	lost := d.lost != nil
	if !lost {
		if q.state != verbs.QPReset && q.state != verbs.QPError {
			_ = q.Modify(&verbs.QPAttr{State: verbs.QPError}, verbs.QPAttrState)
		}
		for len(q.groups) > 0 {
			if err := q.Detach(q.groups[0].GID, q.groups[0].MLID); err != nil {
				return never(err)
			}
		}
	}
	q.leaving, q.state = l, verbs.QPError
	k, request := d.k, destroyQP{QPHandle: q.handle}
	return verbs.Later{
		Wait: func() error {
			defer close(l.back)
			if !lost {
				l.err = k.aside(func(k *kernel) error {
					_, err := call[destroyQP, destroyQPResp](k, cmdDestroyQP, request)
					return err
				})
			}
			return l.err
		},
		End: q.went,
	}
}

// went takes in that the kernel has destroyed the queue pair, or why not.
func (q *queuePair) went(err error) error {
	switch {
	case q.gone:
		return nil
	case err != nil && q.dev.lost == nil:
		q.leaving = nil
		return fmt.Errorf("uverbs: %s: destroy_qp of %d: %w", q.dev.name, q.num, err)
	}
	q.left()
	return nil
}

// left completes what is outstanding, and forgets the queue pair.
func (q *queuePair) left() {
	q.finish(q.leaving.quiet)
	q.forget()
}
