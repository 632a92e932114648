package uverbs

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// notifyEvent passes an event on.
func (q *queuePair) notifyEvent(ev verbs.QPEvent) {
	if q.onEvent != nil && q.leaving == nil {
		q.onEvent(ev)
	}
}

// firstUntaken returns the number of the first send that the device has not taken.
func (q *queuePair) firstUntaken() uint64 {
	n := q.sends.head
	for n < q.sends.tail && q.sq.Taken(n) {
		n++
	}
	return n
}

// flushOutstanding completes outstanding work requests when the kernel will report no further
// completions.
func (q *queuePair) flushOutstanding(quiet uint64) {
	q.sendCQ.drainAll()
	q.recvCQ.drainAll()
	q.flushAfter(quiet)
}

func (q *queuePair) flushAfter(quiet uint64) {
	q.state = verbs.QPError
	q.backlog.n = 0
	q.sends.flush(quiet)
	n := q.sendCQ.ready.Len()
	q.reportSends()
	if q.sendCQ.ready.Len() > n {
		q.sendCQ.wakeOwner()
	}
	q.deliverEarly()
	if q.recvs.head < q.recvs.tail {
		q.recvCQ.wakeOwner()
	}
	for q.recvs.head < q.recvs.tail {
		q.recvCQ.push(verbs.WC{ID: q.recvs.pop().id, Status: verbs.StatusFlushed, Op: verbs.Recv, QP: q})
	}
}

// removeFromDevice removes a destroyed queue pair from everything that refers to it.
func (q *queuePair) removeFromDevice() {
	d := q.dev
	q.gone, q.state = true, verbs.QPError
	delete(d.qps, q.num)
	delete(d.handles, q.event)
	_ = q.release()
	q.pd.users--
	q.sendCQ.users--
	q.recvCQ.users--
	q.sendPart.room += q.attr.MaxSendWR
	if q.srq == nil {
		q.recvPart.room += q.attr.MaxRecvWR
		return
	}
	q.srq.users--
	if q.recvPart.shared[q.srq]--; q.recvPart.shared[q.srq] == 0 {
		delete(q.recvPart.shared, q.srq)
		q.recvPart.room += q.srq.attr.MaxWR
	}
}

// release unmaps the queues.
func (q *queuePair) release() (err error) {
	if q.sq != nil {
		err = q.sq.Close()
	}
	if q.rq != nil {
		err = firstError(err, q.rq.Close())
	}
	q.sq, q.rq, q.gone = nil, nil, true
	return err
}

// finishDestroyed completes outstanding work requests of a destroyed queue pair, and forgets the
// queue pair.
func (q *queuePair) finishDestroyed() {
	q.flushOutstanding(q.leaving.quiet)
	q.removeFromDevice()
}

// handleGone handles an answer that the kernel gives only for a device that no longer exists.
func (d *device) handleGone(err error) {
	d.failDevice(err)
	_ = d.removeFDs() // a closed channel stays readable
}

func (d *device) removeFDs() (err error) {
	for _, r := range []*eventloop.Registration{d.compReg, d.asyncReg} {
		if r != nil {
			err = firstError(err, r.Remove())
		}
	}
	return err
}

// failDevice ends everything on a device that has been removed: outstanding work requests are
// flushed, and earlier completions are delivered unchanged. The kernel's own report of the removal
// may never arrive.
func (d *device) failDevice(err error) {
	if d.lost != nil {
		return
	}
	d.lost = err
	for _, q := range d.qps {
		q.flushOutstanding(q.firstUntaken())
	}
	for q := range d.cqs {
		if q.ready.Len() > 0 {
			q.wakeOwner()
		}
	}
}

// closeWait is how long Close waits for the kernel.
const closeWait = 2 * time.Second

// Close closes the device. The kernel releases the device's objects when its fd is closed, and
// deregisters its memory; the queues' maps are released here. Memory that was not freed stays
// mapped until Free, because it may still be read.
func (d *device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	d.failDevice(unix.ENODEV)
	err := d.removeFDs()
	for p := range d.domains {
		p.gone = true
	}
	err = firstError(err, d.giveBack(closeWait))
	d.dirty, d.due, d.low = nil, nil, nil
	return err
}

// giveBack releases all objects in the kernel, except memory.
func (d *device) giveBack(wait time.Duration) (err error) {
	for _, q := range d.qps {
		q.removeFromDevice()
	}
	for _, h := range d.handles {
		err = firstError(err, h.(closer).release())
	}
	clear(d.handles)
	d.back, d.channels = true, hca.Channels{Completions: -1, Async: -1}
	return firstError(err, d.hw.Close(wait))
}

// Removed is called when the kernel is removing the device. rxe and siw delay that until they are
// no longer open, and notify no process: outstanding work requests are flushed, and everything that
// the kernel waits for is released immediately. Memory stays until Free.
func (d *device) Removed() {
	if d.closed || d.back {
		return
	}
	d.handleGone(unix.ENODEV)
	_ = d.giveBack(0)
}
