//go:build linux && rdma

package ucm

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

func env(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: this test runs in the rig's machine", name)
	}
	return v
}

func get[E cmid.Event](t *testing.T, c *cmid.Channel) E {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	fd, err := c.FD()
	if err != nil {
		t.Fatal(err)
	}
	for {
		ev, _, err := c.GetEvent()
		if err == nil {
			if got, ok := ev.(E); ok {
				return got
			}
			switch ev.(type) {
			case *cmid.Closed, *cmid.TimewaitExit: // these come when the kernel has time for them
				continue
			}
			var want E
			t.Fatalf("got %T %+v, want %T", ev, ev, want)
		}
		if !errors.Is(err, unix.EAGAIN) {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			var want E
			t.Fatalf("no %T", want)
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeviceFor: the address of a device, and what belongs to none.
func TestDeviceFor(t *testing.T) {
	for _, c := range []struct {
		ip   netip.Addr
		want string
	}{
		{netip.MustParseAddr(env(t, "RDMA_ADDR")), env(t, "RDMA_DEVICE")},
		{netip.MustParseAddr(env(t, "RDMA_ADDR2")), env(t, "RDMA_DEVICE")},
		{netip.MustParseAddr(env(t, "RDMA_PLAIN_ADDR")), ""},
		{netip.MustParseAddr(env(t, "RDMA_SILENT_ADDR")), ""},
		{netip.IPv4Unspecified(), ""},
		{netip.MustParseAddr("127.0.0.1"), ""},
	} {
		name, ok, err := DeviceFor(c.ip)
		if err != nil || name != c.want || ok != (c.want != "") {
			t.Errorf("%v: %q, %v, %v; want %q", c.ip, name, ok, err, c.want)
		}
	}
}

// TestWithoutDataPath: connections are managed where there is no data path. The owners' queue
// pairs are their own; iw_cm wants to see them.
func TestWithoutDataPath(t *testing.T) {
	ip := netip.MustParseAddr(env(t, "RDMA_ADDR"))
	c, err := cmid.OpenChannel(New(Config{NoProvider: true}))
	must(t, err)
	l, err := c.CreateID(cmid.PortSpaceTCP)
	must(t, err)
	must(t, l.BindAddr(cmid.AddrFrom(ip, 0)))
	must(t, l.Listen(0))
	a, err := c.CreateID(cmid.PortSpaceTCP)
	must(t, err)
	must(t, a.ResolveAddr(cmid.Addr{}, l.LocalAddr(), time.Second))
	if r := get[*cmid.AddrResolved](t, c); r.Device != env(t, "RDMA_DEVICE") {
		t.Errorf("device %q", r.Device)
	}
	must(t, a.ResolveRoute(time.Second))
	get[*cmid.RouteResolved](t, c)
	if _, err := a.CreateQP(verbs.QPInitAttr{}); !errors.Is(err, verbs.ErrNotSupported) {
		t.Errorf("create_qp: %v, want ErrNotSupported", err)
	}
	must(t, a.Connect([]byte("hello"), &cmid.ConnParam{QPNum: 77}))
	if env(t, "RDMA_KIND") == "siw" {
		if f := get[*cmid.CommandFailed](t, c); !errors.Is(f, unix.EINVAL) {
			t.Errorf("connect of a queue pair that does not exist: %v", f)
		}
	} else {
		p := c.ID(get[*cmid.ConnectRequest](t, c).ID)
		must(t, p.Accept([]byte("yes"), &cmid.ConnParam{QPNum: 78}))
		if r := get[*cmid.ConnectResponse](t, c); r.Param.QPNum != 78 {
			t.Errorf("%+v", r)
		}
		must(t, a.Establish())
		get[*cmid.Established](t, c)
		must(t, a.Disconnect())
		get[*cmid.Disconnected](t, c)
		must(t, p.Disconnect())
		get[*cmid.Disconnected](t, c)
		must(t, p.Destroy())
	}
	must(t, a.Destroy())
	must(t, l.Destroy())
	must(t, c.Close())
}
