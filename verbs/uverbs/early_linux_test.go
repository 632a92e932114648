package uverbs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// climbing returns a fake whose queue pair is on its way to RTS. The kernel has done both changes,
// but the loop has not processed either. notified counts how often the owner is notified.
func climbing(t *testing.T) (f *fake, rtr, rts verbs.Later, notified *int) {
	t.Helper()
	f = newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	f.q.state = verbs.QPInit
	notified = new(int)
	f.cq.notify = func() { *notified++ }
	for id := range uint64(3) {
		f.must(f.q.PostRecv(verbs.RecvWR{ID: id + 1, SGE: f.part(int(id)*64, 64)}))
	}
	rtr = f.q.ModifyLater(&verbs.QPAttr{State: verbs.QPRTR}, verbs.QPAttrState)
	rts = f.q.ModifyLater(&verbs.QPAttr{State: verbs.QPRTS}, verbs.QPAttrState)
	f.must(rtr.Wait())
	f.must(rts.Wait())
	return f, rtr, rts, notified
}

// TestMessageBeforeTheOutcome: a message that arrives before the loop knows that its queue pair can
// send is reported once the loop knows. So the owner can answer immediately. Messages keep their
// order. Another queue pair of the same completion queue does not wait.
func TestMessageBeforeTheOutcome(t *testing.T) {
	f, rtr, rts, notified := climbing(t)
	other := &queuePair{
		dev: f.d, typ: verbs.RC, num: 18, sendCQ: f.cq, recvCQ: f.cq, state: verbs.QPRTS, sends: newSends(1), recvs: newRecvs(1),
	}
	other.recvs.push(recv{id: 7, room: 64})
	f.d.qps[18] = other
	f.recv(10)
	f.recv(11)
	f.cr.produce(hca.WC{WRID: recvCookie, QPNum: 18, ByteLen: 3})
	var one [1]verbs.WC
	if n := f.cq.Poll(one[:]); n != 1 || one[0].QP != verbs.QP(other) || one[0].Bytes != 3 {
		t.Fatalf("polled %+v, want the other queue pair's message", one[:n])
	}
	f.want("before the outcome")
	f.cq.notifyOrArm()
	if !f.cq.isEmpty() || *notified != 0 {
		t.Errorf("got %d times of messages that are kept: the owner would poll without end", *notified)
	}
	f.must(rtr.End(nil))
	f.want("it can receive, and not send")
	f.cq.notifyOrArm()
	f.must(rts.End(nil))
	f.cq.notifyOrArm()
	if *notified != 1 {
		t.Errorf("got %d times when it can send, want once: the kernel's word of it has come already", *notified)
	}
	f.recv(12)
	f.want("when it can send", verbs.WC{ID: 1, Op: verbs.Recv, Bytes: 10}, verbs.WC{ID: 2, Op: verbs.Recv, Bytes: 11},
		verbs.WC{ID: 3, Op: verbs.Recv, Bytes: 12})
	f.must(f.q.PostSend(&verbs.SendWR{Inline: []byte("at once")}))
}

// TestMessageBeforeAFailure: however the change ends, messages that have arrived are reported
// before flushed work requests, even if the device is removed during the change and the change
// never ends.
func TestMessageBeforeAFailure(t *testing.T) {
	came := []verbs.WC{{ID: 1, Op: verbs.Recv, Bytes: 10}}
	flushed := []verbs.WC{
		{ID: 2, Status: verbs.StatusFlushed, Op: verbs.Recv}, {ID: 3, Status: verbs.StatusFlushed, Op: verbs.Recv},
	}
	t.Run("of the change", func(t *testing.T) {
		f, rtr, rts, _ := climbing(t)
		f.recv(10)
		f.want("before the outcome")
		f.must(rtr.End(nil))
		if err := rts.End(unix.ETIMEDOUT); !errors.Is(err, unix.ETIMEDOUT) {
			t.Fatal(err)
		}
		f.want("when it has failed", came...)
		f.must(f.q.Destroy())
		f.want("destroyed", flushed...)
	})
	t.Run("of the queue pair", func(t *testing.T) {
		f, rtr, rts, _ := climbing(t)
		f.recv(10)
		f.want("before the outcome")
		f.must(f.q.Modify(&verbs.QPAttr{State: verbs.QPError}, verbs.QPAttrState))
		f.must(rtr.End(nil))
		f.must(rts.End(nil))
		f.must(f.q.Destroy())
		f.want("destroyed", append(came, flushed...)...)
	})
	t.Run("of the device", func(t *testing.T) {
		f, _, _, notified := climbing(t)
		f.d.cqs[f.cq] = struct{}{}
		f.recv(10)
		f.want("before the outcome")
		f.d.failDevice(unix.ENODEV)
		f.cq.notifyOrArm()
		if *notified != 1 {
			t.Errorf("got %d times, want once", *notified)
		}
		f.want("the device has gone", append(came, flushed...)...)
	})
}
