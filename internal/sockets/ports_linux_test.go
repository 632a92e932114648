package sockets

import (
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// The current settings apply: the range of ports, and the reserved ones. The test changes them in a
// network namespace of its thread.
func TestPortsFollowTheSysctls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime.LockOSThread() // never unlocked
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Skipf("making a network namespace needs privileges: %v", err)
		}
		set := func(name, value string) {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0); err != nil {
				t.Skipf("the namespace's ports cannot be changed: %v", err)
			}
		}
		l := new(Linux)
		for _, c := range []struct {
			ports, reserved string
			low, n          int
			taken, free     []int
		}{
			{"40000 40099", "40000,40010-40019,40099", 40000, 100, []int{40000, 40010, 40015, 40019, 40099}, []int{40001, 40009, 40020, 40098}},
			{"50000 50009", "", 50000, 10, nil, []int{40000, 50000, 50009}},
			{"50000 50009", "1-65535", 50000, 10, []int{1, 50000, 65535}, nil},
		} {
			set("ip_local_port_range", c.ports)
			set("ip_local_reserved_ports", c.reserved+"\n")
			time.Sleep(time.Second)
			if low, n := l.EphemeralPorts(); low != c.low || n != c.n {
				t.Errorf("%s: %d ports from %d", c.ports, n, low)
			}
			for _, p := range c.taken {
				if !l.ReservedPort(p) {
					t.Errorf("port %d of %s is not reserved", p, c.reserved)
				}
			}
			for _, p := range c.free {
				if l.ReservedPort(p) {
					t.Errorf("port %d of %s is reserved", p, c.reserved)
				}
			}
		}
	})
}
