package uverbs

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// TestDestroyLater: while the kernel destroys a queue pair, nothing can be posted to it, its
// completions are reported, and its resources are kept. Then everything that is left is flushed,
// once.
func TestDestroyLater(t *testing.T) {
	f := newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	f.must(f.q.PostSend(&verbs.SendWR{ID: 1, Flags: verbs.Signaled, SGL: []verbs.SGE{f.part(0, 8)}}))
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 2, SGE: f.part(64, 64)}))
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 3, SGE: f.part(128, 64)}))
	later := f.q.DestroyLater()
	for what, err := range map[string]error{
		"a send": f.q.PostSend(&verbs.SendWR{}), "a receive": f.q.PostRecv(verbs.RecvWR{}), "a change": f.q.Modify(&verbs.QPAttr{}, 0),
		"a group": f.q.Attach([16]byte{1}, 1),
	} {
		if !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v, want EINVAL", what, err)
		}
	}
	delivered := false
	f.q.OnEvent(func(verbs.QPEvent) { delivered = true })
	f.q.notifyEvent(verbs.QPFatal)
	f.recv(5)
	f.want("what had come", verbs.WC{ID: 2, Op: verbs.Recv, Bytes: 5})
	if err := f.cq.Close(); !errors.Is(err, unix.EBUSY) || delivered {
		t.Errorf("its completion queue is closed: %v, want EBUSY; reported an event: %v", err, delivered)
	}
	f.must(later.Wait())
	f.want("not before End")
	f.must(later.End(nil))
	f.want("flushed", verbs.WC{ID: 1, Status: verbs.StatusFlushed}, verbs.WC{ID: 3, Status: verbs.StatusFlushed, Op: verbs.Recv})
	f.must(later.End(nil))
	f.must(f.q.Destroy())
	f.want("once")
	if f.cq.users != 0 || f.d.qps[17] != nil {
		t.Errorf("%d queues complete there", f.cq.users)
	}
}

// TestDestroyWaitsForDestroyLater: Destroy waits for a DestroyLater that is under way, and returns
// its result.
func TestDestroyWaitsForDestroyLater(t *testing.T) {
	f := newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 2, SGE: f.part(64, 64)}))
	later := f.q.DestroyLater()
	time.AfterFunc(20*time.Millisecond, func() { _ = later.Wait() })
	f.must(f.q.Destroy())
	f.want("flushed", verbs.WC{ID: 2, Status: verbs.StatusFlushed, Op: verbs.Recv})
	f.must(later.End(nil))
	f.want("once")
}

// TestNumberComesAgain: a new queue pair may get the number of an old one before the call that
// destroys the old one has returned.
func TestNumberComesAgain(t *testing.T) {
	f := newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 2, SGE: f.part(64, 64)}))
	later := f.q.DestroyLater()
	again := &queuePair{dev: f.d, num: 17}
	f.d.registerQP(again)
	f.want("the old one's", verbs.WC{ID: 2, Status: verbs.StatusFlushed, Op: verbs.Recv})
	f.must(later.End(later.Wait()))
	if f.d.qps[17] != again {
		t.Error("the new one is not known any more")
	}
}

// TestModifyLater: a change takes effect at End. A failure that was noticed before remains.
func TestModifyLater(t *testing.T) {
	f := newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	f.q.state = verbs.QPInit
	rts := func() verbs.Later {
		return f.q.ModifyLater(&verbs.QPAttr{State: verbs.QPRTS}, verbs.QPAttrState)
	}
	later := rts()
	f.must(later.Wait())
	if err := f.q.Destroy(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("destroyed while it is being modified: %v, want EBUSY", err)
	}
	if err := f.q.PostSend(&verbs.SendWR{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a send before End: %v", err)
	}
	f.must(later.End(nil))
	f.must(f.q.PostSend(&verbs.SendWR{}))
	if err := rts().End(unix.ETIMEDOUT); !errors.Is(err, unix.ETIMEDOUT) {
		t.Errorf("%v, want what the kernel has said", err)
	}
	later = rts()
	f.q.markEnded()
	f.must(later.End(later.Wait()))
	if f.q.state != verbs.QPError {
		t.Errorf("brought from an error to state %d", f.q.state)
	}
	f.must(f.q.Destroy())
}

// TestFileStaysForCalls: a call off the loop uses the file on which it was begun, and the last call
// closes that file.
func TestFileStaysForCalls(t *testing.T) {
	k, err := openKernel(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	fd, open := k.fd, func(fd int) bool {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return err == nil
	}
	err = k.useOffLoop(func(aside *kernel) error {
		if err := k.Close(time.Millisecond); err != nil {
			t.Error(err)
		}
		if !open(fd) || aside.fd != fd {
			t.Error("closed, while a call is under way")
		}
		return executeCommand(aside, cmdDestroyAH, giveBack{})
	})
	if err != nil || open(fd) {
		t.Errorf("%v; open afterwards: %v", err, open(fd))
	}
	if err := k.useOffLoop(func(*kernel) error { return nil }); !errors.Is(err, unix.ENODEV) {
		t.Errorf("a call afterwards: %v, want ENODEV", err)
	}
}

// TestCreateAHLater: the domain is in use from the beginning until the call fails or the handle is
// closed.
func TestCreateAHLater(t *testing.T) {
	f := newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	if ah, err := f.d.CreateAH(nil, &verbs.AHAttr{}); ah != nil || !errors.Is(err, verbs.ErrNotSupported) {
		t.Errorf("an address handle of a device without datagrams: %v, %v", ah, err)
	}
	f.d.attr.MaxDatagram = 1024
	later := f.d.CreateAHLater(nil, &verbs.AHAttr{})
	if f.d.pd.users != 1 {
		t.Errorf("%d users of the domain, want the handle to come", f.d.pd.users)
	}
	ah, err := later.End(unix.ETIMEDOUT)
	if ah != nil || !errors.Is(err, unix.ETIMEDOUT) || f.d.pd.users != 0 {
		t.Errorf("%v, %v, %d users, when nobody has answered", ah, err, f.d.pd.users)
	}
	later = f.d.CreateAHLater(nil, &verbs.AHAttr{})
	ah, err = later.End(later.Wait())
	f.must(err)
	f.must(ah.Close())
	if f.d.pd.users != 0 {
		t.Errorf("%d users of the domain, when its handle is closed", f.d.pd.users)
	}
}
