//go:build linux && rdma

package differential

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/states"
)

// TestRoCE compares soft-RoCE with the twin.
func TestRoCE(t *testing.T) {
	only(t, "rxe")
	hunt(t, &Pair{Name: RoCEPair, Guide: twinIB, Left: kernel(t, "rxe"), Right: twinIB}, 300)
}

// TestSiw compares soft-iWARP with the embedded device, and with the twin.
func TestSiw(t *testing.T) {
	only(t, "siw")
	t.Run("iwarp", func(t *testing.T) {
		hunt(t, &Pair{Name: SoftPair, Guide: twinIWARP, Left: kernel(t, "siw"), Right: plain(t), Costly: blocks}, 300)
	})
	t.Run("twin", func(t *testing.T) {
		hunt(t, &Pair{Name: SiwTwinPair, Guide: twinIWARP, Left: kernel(t, "siw"), Right: twinIWARP, Costly: blocks}, 300)
	})
}

// blocks reports that soft-iWARP takes 10 s: it waits for the peer's answer.
func blocks(verb string, s states.State) bool { return verb == "destroy" && s == states.Connecting }

func only(t *testing.T, kind string) {
	t.Helper()
	switch got := os.Getenv("RDMA_KIND"); got {
	case kind:
	case "rxe", "siw":
		t.Skipf("the device is %s", got)
	default:
		t.Fatalf("RDMA_KIND is %q: this test runs in the rig's machine", got)
	}
}

func guestAddr(t *testing.T, name string) netip.Addr {
	t.Helper()
	ip, err := netip.ParseAddr(os.Getenv(name))
	if err != nil {
		t.Fatalf("%s: %v: this test runs in the rig's machine", name, err)
	}
	return ip
}

// kernel is the kernel's rdma_cm on a soft device.
func kernel(t *testing.T, name string) Side {
	t.Helper()
	rig := Rig{
		Address: guestAddr(t, "RDMA_ADDR"), Second: guestAddr(t, "RDMA_ADDR2"), Plain: guestAddr(t, "RDMA_PLAIN_ADDR"),
		Foreign: guestAddr(t, "RDMA_SILENT_ADDR"), NoARP: guestAddr(t, "RDMA_NOARP_ADDR"),
		NoRoute: netip.MustParseAddr("2001:db8::1"), Ports: [2]uint16{7471, 7472},
		Patience: 800 * time.Millisecond, Quiet: 3 * time.Millisecond,
	}
	return Side{Name: name, Open: func() (Rig, error) {
		r := rig
		r.Driver = ucm.New(ucm.Config{})
		return r, nil
	}}
}

// plain is the embedded device, on an address that no RDMA device has.
func plain(t *testing.T) Side {
	t.Helper()
	addr := guestAddr(t, "RDMA_PLAIN_ADDR")
	return Side{Name: "iwarp", Open: func() (Rig, error) {
		ports, err := FreePorts()
		return Rig{
			Driver: iwarp.New(), Address: addr, Foreign: netip.MustParseAddr("203.0.113.77"), Ports: ports,
			NoRoute:  netip.MustParseAddr("2001:db8::1"),
			Patience: 400 * time.Millisecond,
		}, err
	}}
}
