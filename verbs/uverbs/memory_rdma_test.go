//go:build linux && rdma

package uverbs

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

func TestRCWriteAndRead(t *testing.T) {
	a, b := pair(t, nil)
	for i := range b.mr.Bytes {
		b.mr.Bytes[i] = byte(i) ^ byte(i>>8)
	}
	want := bytes.Clone(b.mr.Bytes[8*slotLen : 9*slotLen])
	copy(a.slot(16), "written")
	near := func(off, n int) []verbs.SGE {
		return []verbs.SGE{{MR: a.mr, Offset: uint32(off), Length: uint32(n)}}
	}
	for _, wr := range []verbs.SendWR{
		{ID: 1, Op: verbs.Write, Flags: verbs.Signaled, SGL: near(16*slotLen, 7), RemoteAddr: b.mr.Addr + 3, RKey: b.mr.RKey},
		{ID: 2, Op: verbs.Read, SGL: near(0, slotLen), RemoteAddr: b.mr.Addr + 8*slotLen, RKey: b.mr.RKey},
		{ID: 3, Op: verbs.Write, Inline: []byte("inline"), RemoteAddr: b.mr.Addr + 100, RKey: b.mr.RKey},
		{ID: 4, Op: verbs.Read, Flags: verbs.Signaled | verbs.Fence, SGL: near(slotLen, 8), RemoteAddr: b.mr.Addr + 3, RKey: b.mr.RKey},
	} {
		a.must(a.qp.PostSend(&wr))
	}
	a.until("the last Read", func() bool { return len(a.done) == 2 })
	if got := a.done[0]; got != (verbs.WC{ID: 1, Op: verbs.Write, Bytes: 7, QP: a.qp}) {
		t.Errorf("the Write completed as %+v", got)
	}
	if got := a.done[1]; got != (verbs.WC{ID: 4, Op: verbs.Read, Bytes: 8, QP: a.qp}) {
		t.Errorf("the Read completed as %+v", got)
	}
	if got := string(b.mr.Bytes[3:10]) + " " + string(b.mr.Bytes[100:106]) + " " + string(a.mr.Bytes[slotLen:slotLen+7]); got != "written inline written" {
		t.Errorf("memory has %q", got)
	}
	if !bytes.Equal(a.slot(0), want) {
		t.Error("the Read brought something else than what is there")
	}
}

func TestRCRemoteAccessIsRefused(t *testing.T) {
	a, b := pair(t, nil)
	b.recv(0, 64)
	a.must(a.qp.PostSend(&verbs.SendWR{
		ID: 1, Op: verbs.Write, Inline: []byte("x"), RemoteAddr: b.mr.Addr + uint64(len(b.mr.Bytes)), RKey: b.mr.RKey,
	}))
	a.send(2, "behind it")
	a.until("both failures", func() bool { return len(a.done) == 2 && len(b.done) == 1 })
	if a.done[0].ID != 1 || a.done[0].Status != verbs.StatusRemAccess || a.done[1].Status != verbs.StatusFlushed {
		t.Errorf("completed as %+v", a.done)
	}
	if err := a.qp.PostSend(&verbs.SendWR{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a send on a queue pair that has failed: %v, want EINVAL", err)
	}
}

func TestDestroyFlushesOnce(t *testing.T) {
	a, b := pair(t, nil)
	for i := range 4 {
		a.recv(i, 64)
	}
	for i := range 3 { // there are no receives for them
		a.send(i, "x")
	}
	a.must(a.loop.Turn())
	a.must(a.qp.Destroy())
	a.must(a.qp.Destroy())
	a.until("the notification of the flush", func() bool { return len(a.done) == 7 })
	for i, wc := range append(a.of(verbs.Send), a.of(verbs.Recv)...) {
		if want := []uint64{0, 1, 2, 100, 101, 102, 103}[i]; wc.ID != want || wc.Status != verbs.StatusFlushed {
			t.Errorf("completion %d is %+v, want work request %d flushed", i, wc, want)
		}
	}
	a.must(a.cq.Close())
	if err := b.cq.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("destroy_cq of a queue in use: %v, want EBUSY", err)
	}
}

// TestMemlock runs itself as an unprivileged user, because with rxe the limit does not apply to
// users that may lock memory.
func TestMemlock(t *testing.T) {
	if os.Getenv("UVERBS_MEMLOCK") == "" {
		path, err := findFile(env(t, "RDMA_DEVICE"))
		if err == nil {
			err = os.Chmod(path, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestMemlock$", "-test.v")
		cmd.Env = append(os.Environ(), "UVERBS_MEMLOCK=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "RLIMIT_MEMLOCK is 262144 bytes") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	r := newRig(t, eventloop.Config{})
	const limit = 256 << 10
	r.must(unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit}))
	small, err := r.dev.Alloc(128<<10, verbs.LocalWrite)
	r.must(err)
	_, err = r.dev.Alloc(1<<20, verbs.LocalWrite)
	var e *MemlockError
	if !errors.As(err, &e) || !errors.Is(err, unix.ENOMEM) || e.Limit != limit || e.Need != 1<<20 || e.Pinned < 128<<10 {
		t.Errorf("1 MiB over a limit of 256 KiB, with 128 KiB pinned: %#v: %v", e, err)
	}
	t.Log(err)
	r.must(r.dev.Free(small))
	again, err := r.dev.Alloc(200<<10, verbs.LocalWrite)
	r.must(err)
	r.must(r.dev.Free(again))
}

func TestNothingIsLeft(t *testing.T) {
	count := func() (fds, maps int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries), strings.Count(string(text), "infiniband")
	}
	fds, maps := count()
	for range 3 {
		t.Run("", func(t *testing.T) {
			r := newRig(t, eventloop.Config{})
			for range 3 {
				s := r.side(verbs.RC, nil)
				_ = s
			}
			_, err := r.dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 10})
			r.must(err)
			pd, err := r.dev.AllocPD()
			r.must(err)
			_, err = pd.Alloc(10, 0)
			r.must(err)
			if f, m := count(); f <= fds || m <= maps {
				t.Fatalf("%d fds and %d maps with a device, %d and %d without: this counts the wrong things", f, m, fds, maps)
			}
		})
	}
	if f, m := count(); f != fds || m != maps {
		t.Errorf("%d fds and %d maps, %d and %d before: Close gives everything back", f, m, fds, maps)
	}
}

func TestRemovedDeviceIsClosed(t *testing.T) {
	kind, netdev := env(t, "RDMA_KIND"), env(t, "RDMA_NETDEV")
	r := newRig(t, eventloop.Config{})
	s := r.side(verbs.RC, nil)
	s.recv(0, 64)
	del := exec.Command("rdma", "link", "del", r.dev.name)
	r.must(del.Start()) // it waits for this process
	r.must(r.dev.Close())
	r.must(del.Wait())
	t.Cleanup(func() {
		if out, err := exec.Command("rdma", "link", "add", r.dev.name, "type", kind, "netdev", netdev).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	if err := s.qp.PostSend(&verbs.SendWR{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a send on a device that is gone: %v, want EINVAL", err)
	}
	if err := s.qp.PostRecv(verbs.RecvWR{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a receive on a device that is gone: %v, want EINVAL", err)
	}
	if _, err := r.dev.Alloc(1, 0); !errors.Is(err, unix.ENODEV) {
		t.Errorf("memory of a device that is gone: %v, want ENODEV", err)
	}
	s.poll()
	if len(s.done) != 1 || s.done[0].Status != verbs.StatusFlushed {
		t.Errorf("completed %+v, want the receive flushed", s.done)
	}
	r.must(s.qp.Destroy())
	r.must(s.cq.Close())
}
