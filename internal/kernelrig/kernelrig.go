//go:build linux

// Package kernelrig describes to tests the device of the machine that they run in: its addresses,
// and the differences of its kernel from the conformance suite. Package vm describes the device in
// environment variables.
package kernelrig

import (
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/conformance"
)

// Env returns an environment variable that describes the device.
func Env(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: this test runs in the rig's machine", name)
	}
	return v
}

// Addr returns an address from Env.
func Addr(t testing.TB, name string) netip.Addr {
	t.Helper()
	ip, err := netip.ParseAddr(Env(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return ip
}

// RDMA runs rdma(8).
func RDMA(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("rdma", args...).CombinedOutput(); err != nil {
		t.Fatalf("rdma %v: %v: %s", args, err, out)
	}
}

// StartRDMA begins to run rdma(8), and gives the function that waits for it.
func StartRDMA(t testing.TB, args ...string) (wait func() error) {
	t.Helper()
	cmd := exec.Command("rdma", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd.Wait
}

// kernelRelease returns the kernel's release, such as 6.1.0-56-amd64.
func kernelRelease(t testing.TB) string {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Rig returns the machine's device with a driver. A device that a test has removed is made again.
func Rig(t *testing.T, d cmid.Driver) conformance.Rig {
	t.Helper()
	kind, device, netdev := Env(t, "RDMA_KIND"), Env(t, "RDMA_DEVICE"), Env(t, "RDMA_NETDEV")
	return conformance.Rig{
		Active: d, Passive: d,
		Address: Addr(t, "RDMA_ADDR"), Second: Addr(t, "RDMA_ADDR2"), Local: Addr(t, "RDMA_ADDR2"), Other: Addr(t, "RDMA_OTHER_ADDR"),
		NotLocal:    Addr(t, "RDMA_SILENT_ADDR"),
		Silent:      Addr(t, "RDMA_NOARP_ADDR"),
		NoRoute:     netip.MustParseAddr("2001:db8::1"),
		Plain:       Addr(t, "RDMA_PLAIN_ADDR"),
		Privileged:  true,
		Datagrams:   kind == "rxe",
		Patience:    30 * time.Second,
		Differences: Differences(kind, kernelRelease(t)),
		RemoveDevice: func() {
			// it waits until the device is no longer open
			removed := StartRDMA(t, "link", "del", device)
			t.Cleanup(func() {
				if err := removed(); err != nil {
					t.Errorf("removing %s: %v", device, err)
				}
				RDMA(t, "link", "add", device, "type", kind, "netdev", netdev)
			})
		},
	}
}
