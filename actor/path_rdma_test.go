//go:build linux && rdma

package actor

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// run runs a program of the machine's.
func run(tb testing.TB, words ...string) {
	tb.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v: %s", words, err, out)
	}
}

const (
	vlanAddr4, vlanAddr6 = "10.10.5.1", "fd00:5::1"
	plainAddr6           = "fd00:1::1"
	vlanSilent           = "10.10.5.99"
)

// vlan makes a VLAN on both ends of the machine's veth pair, and a global IPv6 address beside it.
// Packets of the traffic class 0x10, which is priority 6 to Linux, get the VLAN's priority 5, and
// those of 104, which is 2 to Linux, get 3.
func vlan(tb testing.TB) (near, far string) {
	tb.Helper()
	netdev := env(tb, "RDMA_NETDEV")
	wire := netdev[:2] + "1"
	near, far = netdev+".5", wire+".5"
	run(tb, "modprobe", "8021q")
	run(tb, "ip", "link", "add", "link", netdev, "name", near, "type", "vlan", "id", "5", "egress-qos-map", "2:3", "6:5")
	run(tb, "ip", "link", "add", "link", wire, "name", far, "type", "vlan", "id", "5")
	tb.Cleanup(func() {
		run(tb, "ip", "link", "del", near)
		run(tb, "ip", "link", "del", far)
		run(tb, "ip", "addr", "del", plainAddr6+"/64", "dev", netdev)
	})
	run(tb, "ip", "addr", "add", vlanAddr4+"/24", "dev", near)
	run(tb, "ip", "addr", "add", vlanAddr6+"/64", "dev", near, "nodad")
	run(tb, "ip", "addr", "add", plainAddr6+"/64", "dev", netdev, "nodad")
	run(tb, "ip", "link", "set", near, "up")
	run(tb, "ip", "link", "set", far, "up")
	run(tb, "ip", "neigh", "replace", vlanSilent, "lladdr", "02:00:00:00:01:01", "nud", "permanent", "dev", near)
	return near, far
}

// linkLocal returns an interface's own address, with its zone.
func linkLocal(tb testing.TB, netdev string) string {
	tb.Helper()
	for range 50 {
		in, err := net.InterfaceByName(netdev)
		if err != nil {
			tb.Fatal(err)
		}
		addrs, _ := in.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
				return p.Addr().WithZone(netdev).String()
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	tb.Fatalf("%s has no address of its own", netdev)
	return ""
}

// gidAt returns an entry of the device's table of GIDs.
func gidAt(tb testing.TB, index uint8) netip.Addr {
	tb.Helper()
	text, err := os.ReadFile("/sys/class/infiniband/" + env(tb, "RDMA_DEVICE") + "/ports/1/gids/" + strconv.Itoa(int(index)))
	if err != nil {
		tb.Fatal(err)
	}
	return netip.MustParseAddr(strings.TrimSpace(string(text))).Unmap()
}

// inspected returns Inspect's report on a connection. In an emulated machine it may not answer in
// time.
func inspected(tb testing.TB, rt *Runtime, id *actor.PID) IDInfo {
	tb.Helper()
	for begin := time.Now(); ; {
		infos := rt.Inspect()
		i := slices.IndexFunc(infos, func(i IDInfo) bool { return i.PID.Equal(id) })
		if i < 0 {
			tb.Fatal("the identifier is gone")
		}
		if !infos[i].AsOf.Before(begin) {
			return infos[i]
		}
		if time.Since(begin) > patience {
			tb.Fatal("the loop does not answer")
		}
	}
}

// connectAt connects to an address of the device, and sends a message there and back.
func connectAt(t *testing.T, rt *Runtime, host string, cfg ...IDConfig) (client, server IDInfo) {
	t.Helper()
	p := pair{client: newProbe(t, rt.sys, rt.OnLoop(), nil), server: newProbe(t, rt.sys, rt.OnLoop(), nil)}
	p.listener = rt.CreateID(p.server.pid, IDConfig{})
	p.server.send(p.listener, &Serve{Addr: net.JoinHostPort(host, "0")})
	l, _ := next[*Listening](p.server)
	p.c = rt.CreateID(p.client.pid, one(cfg))
	p.client.send(p.c, &Dial{Addr: l.Local.String()})
	_, p.s = next[*ConnectRequest](p.server)
	p.server.send(p.s, &Accept{})
	next[*Established](p.server)
	next[*Established](p.client)
	p.client.send(p.c, NewSend(make([]byte, 4000)))
	next[*Received](p.server)
	p.server.send(p.s, NewSend(make([]byte, 4000)))
	next[*Received](p.client)
	client, server = inspected(t, rt, p.c), inspected(t, rt, p.s)
	p.client.send(p.c, &Close{})
	until[*Closed](p.client)
	until[*Closed](p.server)
	p.server.send(p.listener, &DestroyID{})
	until[*Closed](p.server)
	return client, server
}

// A connection's address chooses its GID, and with it the VLAN; the traffic class, its priority
// there. IDInfo.Path shows them. On iWARP there is none.
func TestKernelPath(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	netdev := env(t, "RDMA_NETDEV")
	if env(t, "RDMA_KIND") != "rxe" {
		c, s := connectAt(t, rt, env(t, "RDMA_ADDR"), IDConfig{Transport: Transport{TrafficClass: 104, AckTimeout: time.Second, RetryCount: 2}})
		if c.Path != (Path{}) || s.Path != (Path{}) {
			t.Errorf("%+v and %+v, want none on iWARP", c.Path, s.Path)
		}
		return
	}
	near, _ := vlan(t)
	for _, tt := range []struct {
		name, host, netdev string
		class, sl          uint8
	}{
		{"IPv4", env(t, "RDMA_ADDR"), netdev, 0, 0},
		{"another IPv4", env(t, "RDMA_ADDR2"), netdev, 104, 0},
		{"IPv6", plainAddr6, netdev, 0, 0},
		{"IPv6, of the link", linkLocal(t, netdev), netdev, 104, 0},
		{"IPv4 of a VLAN", vlanAddr4, near, 0, 0},
		{"IPv4 of a VLAN, with a priority", vlanAddr4, near, 0x10, 5},
		{"IPv6 of a VLAN", vlanAddr6, near, 104, 3},
		{"IPv6 of a VLAN's link", linkLocal(t, near), near, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, s := connectAt(t, rt, tt.host, IDConfig{Transport: Transport{TrafficClass: tt.class}})
			for _, i := range []IDInfo{c, s} {
				p := i.Path
				t.Logf("%v to %v: %+v", i.Local, i.Peer, p)
				if p.NetDev != tt.netdev || p.GIDType != "RoCE v2" || gidAt(t, p.GIDIndex) != i.Local.Addr().WithZone("") {
					t.Errorf("%v is GID %d, %v of %q, want one of %s", i.Local, p.GIDIndex, gidAt(t, p.GIDIndex), p.NetDev, tt.netdev)
				}
				if p.TrafficClass != tt.class || p.SL != tt.sl || p.MTU != 1024 || p.RetryCount != 6 || p.RNRRetryCount != 7 {
					t.Errorf("%+v, want the traffic class %d, the priority %d, 1024 bytes, and what is usual", p, tt.class, tt.sl)
				}
			}
		})
	}
}

// Connections without a traffic class have the one that the administrator has configured for the
// device.
func TestKernelDefaultTrafficClass(t *testing.T) {
	if env(t, "RDMA_KIND") != "rxe" {
		t.Skip("iWARP's is the program's alone")
	}
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	const configfs = "/sys/kernel/config"
	if err := unix.Mount("none", configfs, "configfs", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		t.Fatal(err)
	}
	dir := configfs + "/rdma_cm/" + env(t, "RDMA_DEVICE")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	class := func(s string) {
		t.Helper()
		if err := os.WriteFile(dir+"/ports/1/default_roce_tos", []byte(s), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		class("0")
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	class("40")
	for want, cfg := range map[uint8]IDConfig{40: {}, 104: {Transport: Transport{TrafficClass: 104}}} {
		c, s := connectAt(t, rt, env(t, "RDMA_ADDR"), cfg)
		if c.Path.TrafficClass != want || s.Path.TrafficClass != want {
			t.Errorf("%d and %d, want the traffic class %d", c.Path.TrafficClass, s.Path.TrafficClass, want)
		}
	}
}

// sniff returns the DS field of the first packet on an interface that is for port 4791 and for
// host.
func sniff(t *testing.T, netdev, host string) (class func() uint8) {
	t.Helper()
	wire, err := net.InterfaceByName(netdev)
	if err != nil {
		t.Fatal(err)
	}
	const ipv4 = 0x0800
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(binary.BigEndian.Uint16([]byte{ipv4 & 0xff, ipv4 >> 8})))
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: wire.Index, Protocol: binary.BigEndian.Uint16([]byte{ipv4 & 0xff, ipv4 >> 8})})
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	to := netip.MustParseAddr(host).As4()
	return func() uint8 {
		t.Helper()
		for b := make([]byte, 2000); ; {
			n, err := unix.Read(fd, b)
			if err != nil {
				t.Fatalf("no packet for %s: %v", host, err)
			}
			// Ethernet, IPv4 without options, UDP
			if ip := b[14:]; n >= 42 && ip[9] == unix.IPPROTO_UDP && [4]byte(ip[16:20]) == to && binary.BigEndian.Uint16(ip[22:]) == 4791 {
				return ip[1]
			}
		}
	}
}

// The traffic class is in the packets, and those of a VLAN's address are the VLAN's.
func TestKernelTrafficClassInPackets(t *testing.T) {
	if env(t, "RDMA_KIND") != "rxe" {
		t.Skip("iWARP's packets are TCP's")
	}
	leavesNothing(t)
	rt := openKernel(t, testSystem(t), Config{Transport: Transport{TrafficClass: 0x68}})
	netdev := env(t, "RDMA_NETDEV")
	_, far := vlan(t)
	for host, on := range map[string]string{env(t, "RDMA_SILENT_ADDR"): netdev[:2] + "1", vlanSilent: far} {
		class := sniff(t, on, host)
		p := newProbe(t, rt.sys, rt.OnLoop(), nil)
		id := rt.CreateID(p.pid, IDConfig{})
		p.send(id, &Dial{Addr: host + ":7471"}) // no listener answers there
		if c := class(); c != 0x68 {
			t.Errorf("the request to %s has the traffic class %#x, want 0x68", host, c)
		}
		p.send(id, &DestroyID{})
		until[*Closed](p)
	}
}
