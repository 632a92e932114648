package uverbs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// kernelOf returns a kernel that accepts every command and reports nothing.
func kernelOf(t *testing.T, path string) *kernel {
	t.Helper()
	k, err := openKernel(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close(closeWait) })
	return k
}

// TestSolicitedMessageBeforeTheArming: the owner is notified of all completions, then chooses
// solicited ones only, and polls. What arrives before the queue is armed again is not reported by
// the kernel, so the owner must still be notified of it.
func TestSolicitedMessageBeforeTheArming(t *testing.T) {
	f := newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	notified := 0
	f.cq.notify = func() { notified++ }
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 1}))
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 2}))
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 3}))
	f.recv(0)
	f.cq.parts[0].armed = false // its event was reported
	f.cq.handleReport()
	f.cq.ReqNotify(true)
	f.want("the first", verbs.WC{ID: 1, Op: verbs.Recv})
	f.recv(0)
	f.cq.notifyOrArm()
	if notified != 2 || !f.cq.parts[0].quietly {
		t.Errorf("got %d times, armed %v: want 2, of a message that came before it was armed", notified, f.cq.parts[0].quietly)
	}
	f.want("the second", verbs.WC{ID: 2, Op: verbs.Recv})
	f.cq.notifyOrArm()
	f.recv(0)
	f.cq.notifyOrArm()
	if notified != 2 {
		t.Errorf("got %d times: the third message was not solicited, and the kernel was asked before it came", notified)
	}
}

// TestLostDeviceReportsWhatHasCome: work requests that a lost device has completed are reported as
// completed, and the owner is notified, although no event follows.
func TestLostDeviceReportsWhatHasCome(t *testing.T) {
	f := newFake(t)
	f.d.cqs[f.cq] = struct{}{}
	notified := 0
	f.cq.notify = func() { notified++ }
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 1, SGE: f.part(0, 10)}))
	f.must(f.q.PostSend(&verbs.SendWR{ID: 2, Flags: verbs.Signaled}))
	f.must(f.q.PostSend(&verbs.SendWR{ID: 3})) // done without a completion
	f.recv(10)
	f.send(verbs.StatusSuccess)
	f.send(verbs.StatusSuccess)
	f.d.failDevice(unix.ENODEV)
	if !f.cq.due {
		t.Error("nobody notifies the owner")
	}
	f.cq.notifyOrArm()
	if notified != 1 {
		t.Errorf("got %d times, want once", notified)
	}
	f.want("completed before the device went", verbs.WC{ID: 1, Op: verbs.Recv, Bytes: 10}, verbs.WC{ID: 2, Op: verbs.Send})
}

// TestClosedDeviceIsSilent: if an owner closes the device when it is notified, no notification
// follows in that turn.
func TestClosedDeviceIsSilent(t *testing.T) {
	f := newFake(t)
	f.cq.notify = func() { t.Error("notified after the device was closed") }
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 1}))
	f.d.closed = true
	f.d.failDevice(unix.ENODEV)
	f.cq.notifyOrArm()
}

// TestBusyPartLetsOthersThrough: a queue of the kernel's that is never empty does not prevent the
// others from being polled.
func TestBusyPartLetsOthersThrough(t *testing.T) {
	f := newFake(t)
	other := newFakeRing(4*fakeDepth, 6)
	ring, err := newRxeQueue(other.mem, sizeOf[hca.WC](), false)
	f.must(err)
	f.cq.parts = append(f.cq.parts, &cqPart{q: f.cq, ring: &rxeCompletions{ring}, armed: true})
	for i := range uint64(4) {
		f.must(f.q.PostRecv(verbs.RecvWR{ID: i}))
		f.recv(0)
	}
	f.must(f.q.PostSend(&verbs.SendWR{ID: 9, Flags: verbs.Signaled}))
	other.produce(hca.WC{QPNum: 17})
	var ids []uint64
	for range 3 {
		var wc [2]verbs.WC
		for _, c := range wc[:f.cq.Poll(wc[:])] {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) != 5 || ids[0] != 0 || ids[1] != 1 || ids[2] != 9 || ids[3] != 2 || ids[4] != 3 {
		t.Errorf("polled %d by twos, want 0 1, then 9 of the other queue, then 2 and 3", ids)
	}
}

// TestClaims: a claim for which no queue of the kernel's can have room claims nothing. The receives
// of a shared receive queue are claimed only once.
func TestClaims(t *testing.T) {
	f := newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	f.d.caps.MaxCQE = 100
	p := f.cq.parts[0]
	srq := &sharedQueue{dev: f.d, attr: verbs.SRQInitAttr{MaxWR: 60}}
	p.room, p.shared = 50, map[*sharedQueue]int{}
	if _, err := f.cq.partFor(41, srq); !errors.Is(err, unix.EINVAL) || len(f.cq.parts) != 1 || len(f.d.handles) != 0 {
		t.Errorf("a claim to 101 of 100: %v, with %d queues: want EINVAL, and none made", err, len(f.cq.parts))
	}
	p.shared[srq] = 1
	if got, err := f.cq.partFor(50, srq); got != p || err != nil {
		t.Errorf("a claim to what is left beside a shared queue that is counted: %v, %v", got, err)
	}
}
