package ucm

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
)

// TestForgedAnswers: an answer that makes no sense is an error, not a crash.
func TestForgedAnswers(t *testing.T) {
	b := newBench(t)
	id := b.create()
	b.k.answer = func(w wrote, response []byte) error {
		if w.cmd == uabi.CommandQuery {
			for i := range response {
				response[i] = 0xff
			}
		}
		return nil
	}
	if err := id.Do(&cmid.BindAddr{Addr: cmid.MustAddr("10.0.0.1:0")}); !errors.Is(err, unix.EPROTO) {
		t.Errorf("addresses of 65535 bytes: %v, want EPROTO", err)
	}
	if paths, err := id.QueryPath(); err != nil || len(paths)%cmid.PathLen != 0 || len(paths) > 6*cmid.PathLen {
		t.Errorf("4294967295 paths: %d bytes, %v: want those there is room for", len(paths), err)
	}
	b.k.short = 1
	if err := id.Do(&cmid.ResolveRoute{}); !errors.Is(err, unix.EPROTO) {
		t.Errorf("a write that took less: %v, want EPROTO", err)
	}
	b.k.short = 0
}

// TestNewCommands: a kernel that lacks the commands of 2025 answers EINVAL, which we know better.
func TestNewCommands(t *testing.T) {
	b := newBench(t)
	id := b.create()
	b.k.answer = func(w wrote, _ []byte) error {
		if w.cmd >= uabi.CommandResolveIBService {
			return unix.EINVAL
		}
		return nil
	}
	for _, cmd := range []cmid.Command{&cmid.WriteCMEvent{Arg: 7}, &cmid.ResolveIBService{ServiceID: 1}} {
		if err := id.Do(cmd); !errors.Is(err, unix.EOPNOTSUPP) || !strings.Contains(err.Error(), "kernel") {
			t.Errorf("%T: %v, want: not supported by this kernel", cmd, err)
		}
	}
}

// TestWholeStructs: a command's struct is supplied in full, whatever of it is used: most handlers
// copy it regardless of the header.
func TestWholeStructs(t *testing.T) {
	b := newBench(t)
	id := b.create().on(false)
	for _, c := range []struct {
		cmd  cmid.Command
		size int
	}{
		{&cmid.ResolveAddr{Dst: cmid.MustAddr("10.0.0.1:1")}, 272},
		{&cmid.Connect{Param: &cmid.ConnParam{QPNum: 1}}, 288},
		{&cmid.Accept{Param: &cmid.ConnParam{QPNum: 1}}, 296},
		{&cmid.Reject{}, 264},
	} {
		_ = id.Do(c.cmd)
		if w := b.k.wrote[len(b.k.wrote)-1]; len(w.arg) != c.size {
			if w = b.k.wrote[len(b.k.wrote)-2]; len(w.arg) != c.size {
				t.Errorf("%T: %d bytes, want %d", c.cmd, len(w.arg), c.size)
			}
		}
	}
	id.phase = unconnected
}

// TestZeroSource: the kernel looks at the source's family whatever its size.
func TestZeroSource(t *testing.T) {
	b := newBench(t)
	id := b.create()
	if err := id.Do(&cmid.ResolveAddr{Dst: cmid.MustAddr("10.0.0.1:1")}); err != nil {
		t.Fatal(err)
	}
	arg := b.k.wrote[len(b.k.wrote)-1].arg
	if size := binary.NativeEndian.Uint16(arg[8:]); size != 0 {
		t.Errorf("a source of %d bytes", size)
	}
	for i, c := range arg[16:144] {
		if c != 0 {
			t.Fatalf("byte %d of no source is %#x", i, c)
		}
	}
}

// TestMemberships: their events name them, not the identifier, and their numbers are in a separate
// space.
func TestMemberships(t *testing.T) {
	b := newBench(t)
	id := b.create()
	group := cmid.MustAddr("239.1.2.3:0")
	b.k.answer = func(w wrote, response []byte) error {
		if w.cmd == uabi.CommandJoinMulticast {
			binary.NativeEndian.PutUint32(response, id.kid) // the same number
		}
		return nil
	}
	if err := id.Do(&cmid.JoinMulticast{Addr: group}); err != nil {
		t.Fatal(err)
	}
	member := id.groups[0].h
	b.happens(member, id.kid, uabi.EventMulticastJoin)
	if len(b.up.events) != 1 || b.up.events[0].h != id.h || b.up.events[0].ev.Addr != group || b.up.events[0].ev.Kind != states.KindMulticastJoin {
		t.Fatalf("got %+v", b.up.events)
	}
	if err := id.Do(&cmid.LeaveMulticast{Addr: group}); err != nil {
		t.Fatal(err)
	}
	if err := id.Do(&cmid.LeaveMulticast{Addr: group}); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("leaving twice: %v", err)
	}
	b.happens(member, id.kid, uabi.EventMulticastError)
	if len(b.up.events) != 1 {
		t.Errorf("got %+v of a membership that has ended", b.up.events)
	}
}

// TestMigratedRequests: a request that was queued where its listener was leaves its identifier
// there; it is fetched.
func TestMigratedRequests(t *testing.T) {
	b, other := newBench(t), newBench(t)
	l := b.create()
	other.in.drv = b.in.drv
	if err := b.migrate(l, other.in); err != nil {
		t.Fatal(err)
	}
	fetched := false
	other.k.answer = func(w wrote, _ []byte) error {
		switch w.cmd {
		case uabi.CommandQuery:
			if !fetched {
				return unix.EINVAL // it is another file's
			}
		case uabi.CommandMigrateID:
			fetched = w.id == 9
		}
		return nil
	}
	other.happens(l.h, 9, uabi.EventConnectRequest)
	if !fetched || len(other.up.events) != 1 || other.up.events[0].h != l.h || other.in.ids[other.up.events[0].ev.Child.Handle()] == nil {
		t.Errorf("fetched %v, got %+v", fetched, other.up.events)
	}
	if len(b.up.events) != 0 || b.in.ids[l.h] != nil {
		t.Error("the old channel still has it")
	}
	for _, id := range other.in.ids {
		id.phase = unconnected
	}
}

// TestMigratedEvents: the kernel sends no wake-up for events that an identifier brings along.
func TestMigratedEvents(t *testing.T) {
	b, other := newBench(t), newBench(t)
	id := b.create()
	other.in.drv = b.in.drv
	for range eventsPerTurn + 3 {
		other.k.queue(uabi.EventResp{UID: uint64(id.h), Event: uabi.EventAddrChange})
	}
	if err := b.migrate(id, other.in); err != nil {
		t.Fatal(err)
	}
	if len(other.up.events) != 0 {
		t.Error("delivered before Migrate has returned")
	}
	if _, err := other.loop.FD(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := other.loop.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(other.up.events); n != eventsPerTurn+3 {
		t.Errorf("got %d events, want %d", n, eventsPerTurn+3)
	}
}

// TestOpenErrors: each names the missing module or permission.
func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		err, asked error
		say        string
		errno      unix.Errno
	}{
		{unix.ENOENT, nil, "udev", unix.ENOENT},
		{unix.ENOENT, unix.EPROTONOSUPPORT, "ib_core", unix.ENOENT},
		{unix.ENOENT, unix.EINVAL, "rdma_ucm", unix.ENOENT},
		{unix.ENODEV, unix.EINVAL, "modprobe", unix.ENODEV},
		{unix.EACCES, nil, "permission", unix.EACCES},
		{unix.EPERM, nil, "container", unix.EPERM},
		{unix.EMFILE, nil, "ulimit", unix.EMFILE},
	} {
		err := openError("/dev/infiniband/rdma_cm", c.err, c.asked)
		if !strings.Contains(err.Error(), c.say) || !errors.Is(err, c.errno) || !strings.Contains(err.Error(), "/dev/infiniband/rdma_cm") {
			t.Errorf("%v: want it to say %q, and %v", err, c.say, c.errno)
		}
	}
	var open *OpenError
	if _, err := openChannel(t.TempDir() + "/none"); !errors.As(err, &open) || !errors.Is(err, unix.ENOENT) {
		t.Errorf("no file: %v", err)
	}
	if _, err := openChannel(t.TempDir()); !errors.As(err, &open) {
		t.Errorf("a directory: %v", err)
	}
}

// TestUevents: the kernel's messages about the removal or renaming of a device are recognized.
func TestUevents(t *testing.T) {
	for text, want := range map[string]bool{
		"remove@/devices/virtual/infiniband_verbs/uverbs0\x00ACTION=remove": true,
		"move@/devices/virtual/infiniband/rxe1\x00ACTION=move":              true,
		"add@/devices/virtual/infiniband_verbs/uverbs0":                     false,
		"remove@/devices/virtual/net/rx0\x00X=/infiniband_verbs/":           false,
		"move@/devices/virtual/net/rx0":                                     false,
		"":                                                                  false,
	} {
		if got := ofDevice([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestSockaddrs: there and back.
func TestSockaddrs(t *testing.T) {
	for _, a := range []cmid.Addr{
		{},
		cmid.MustAddr("10.1.2.3:7471"), cmid.MustAddr("[2001:db8::1]:80"), cmid.MustAddr("[fe80::1%1]:80"),
		{IB: &cmid.SockaddrIB{PKey: 0xffff, FlowInfo: 1, GID: [16]byte{1, 15: 2}, SID: 0x1060001, SIDMask: ^uint64(0), ScopeID: 3}},
	} {
		sa, err := kernelSockaddr(a)
		if err != nil {
			t.Errorf("%v: %v", a, err)
			continue
		}
		got := addrOf(&sa.Data)
		if a.IB != nil {
			if got.IB == nil || *got.IB != *a.IB {
				t.Errorf("%v came back as %v", a, got)
			}
			continue
		}
		if want := a.Addr().WithZone(""); got.Addr().WithZone("") != want || got.Port() != a.Port() {
			t.Errorf("%v came back as %v", a, got)
		}
	}
	if _, err := kernelSockaddr(cmid.MustAddr("[fe80::1%nosuchif]:1")); !errors.Is(err, unix.ENODEV) {
		t.Errorf("an unknown zone: %v", err)
	}
}

// TestDetached: the kernel hears of it from the channel that an identifier goes to, or that gives
// it up; on its way it belongs to no channel.
func TestDetached(t *testing.T) {
	b, other := newBench(t), newBench(t)
	other.in.drv = b.in.drv
	detach := func(id *driverID) cmid.DetachedInstance {
		t.Helper()
		d, err := id.Detach()
		if err != nil || b.in.ids[id.h] != nil {
			t.Fatalf("detach: %v, still there: %v", err, b.in.ids[id.h] != nil)
		}
		return d
	}
	back, lost, late := b.create(), b.create(), b.create()
	asked := len(b.k.did())
	other.k.answer = func(w wrote, _ []byte) error {
		if w.cmd == uabi.CommandMigrateID {
			return unix.ENODEV
		}
		return nil
	}
	d := detach(back)
	if err := d.Attach(other.in); !errors.Is(err, unix.ENODEV) || other.in.ids[back.h] != nil {
		t.Errorf("the kernel refuses: %v, want ENODEV", err)
	}
	other.k.answer = nil
	if err := d.Attach(b.in); err != nil || b.in.ids[back.h] != back || back.in != b.in {
		t.Errorf("back: %v", err)
	}
	if n := len(b.k.did()); n != asked {
		t.Errorf("%v was written to the channel that an identifier leaves and comes back to", b.k.did()[asked:])
	}
	detach(lost).Destroy()
	for b.k.destroyed(lost.kid) == 0 { // not on this goroutine: it may wait
		runtime.Gosched()
	}
	d = detach(late)
	if err := b.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Attach(other.in); !errors.Is(err, unix.EBADF) {
		t.Errorf("from a channel that was closed: %v, want EBADF, for its descriptor's number is another file's", err)
	}
	if err := d.Attach(b.in); !errors.Is(err, unix.EINVAL) {
		t.Errorf("back to a channel that was closed: %v, want EINVAL", err)
	}
}

// TestMigrateNamesAnOpenDescriptor: a channel that is closed while another one takes an identifier
// over from it keeps its descriptor until that is done. Another file would have the number
// otherwise.
func TestMigrateNamesAnOpenDescriptor(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	open := func() bool {
		_, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0)
		return err == nil
	}
	from := uabi.FromFD(fds[0])
	k := &kernel{answer: func(wrote, []byte) error {
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		if !open() {
			t.Error("the descriptor is closed while the kernel is given its number")
		}
		return nil
	}}
	if _, err := uabi.NewFile(k).MigrateID(from, 9); err != nil {
		t.Error(err)
	}
	if open() {
		t.Error("the descriptor is still open afterwards")
	}
	if _, err := uabi.NewFile(k).MigrateID(from, 9); !errors.Is(err, unix.EBADF) {
		t.Errorf("from a closed channel: %v, want EBADF", err)
	}
}
