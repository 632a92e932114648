//go:build linux && rdma

package ucm_test

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/conformance"
	"github.com/rdmactor/rdmactor/cmid/ucm"
)

func env(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: this test runs in the rig's machine", name)
	}
	return v
}

func addr(t *testing.T, name string) netip.Addr {
	t.Helper()
	ip, err := netip.ParseAddr(env(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return ip
}

// rdma is rdma(8).
func rdma(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("rdma", args...).CombinedOutput(); err != nil {
		t.Fatalf("rdma %v: %v: %s", args, err, out)
	}
}

// startRDMA begins to run rdma(8), and gives the function that waits for it.
func startRDMA(t *testing.T, args ...string) (wait func() error) {
	t.Helper()
	cmd := exec.Command("rdma", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd.Wait
}

func driver() *ucm.Driver { return ucm.New(ucm.Config{}) }

// release is the kernel's, such as 6.1.0-56-amd64.
func release(t *testing.T) string {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	return unix.ByteSliceToString(u.Release[:])
}

// rig is the machine's device. One that a test has removed is made again.
func rig(t *testing.T) conformance.Rig {
	t.Helper()
	kind, device, netdev := env(t, "RDMA_KIND"), env(t, "RDMA_DEVICE"), env(t, "RDMA_NETDEV")
	d := driver()
	differences := []conformance.Difference{
		{What: conformance.NoUserEvent, Why: "the kernel has the command since 6.17"},
		{What: conformance.LoopbackOnly, Why: "the driver turns away what the kernel brings from elsewhere"},
	}
	switch kind {
	case "rxe":
		differences = append(differences,
			conformance.Difference{What: conformance.TooLongIsRemOp, Why: "rxe finds out as it copies, and takes the receive for malformed"},
			conformance.Difference{What: conformance.OneMoreNotification, Why: "a queue that is armed for every completion stays so until the next one"},
		)
		if strings.HasPrefix(release(t), "6.1.") {
			differences = append(differences, conformance.Difference{
				What: conformance.TooLongEnds, Why: "rxe took the receive for malformed, which ends datagram queue pairs as well",
			})
		}
	case "siw":
		differences = append(differences,
			conformance.Difference{What: conformance.SeparateFamilies, Why: "siw takes the stream and finds an IPv4 address where it looks for IPv6"},
			conformance.Difference{What: conformance.SentBehindRefused, Why: "siw finds out when it answers the Read, and reports a Send when TCP has it"},
			conformance.Difference{What: conformance.AcceptServesAsked, Why: "siw raises what accept says to what the request says"},
			conformance.Difference{What: conformance.ReadsUnchecked, Why: "siw checks what it answers Reads with like what it sends"},
			conformance.Difference{What: conformance.CaughtWriteFails, Why: "the peer may answer before siw's thread has noted that it has sent"},
			conformance.Difference{What: conformance.EndsWithoutReason, Why: "siw reads a Terminate and reports to nobody what is in it"},
			conformance.Difference{What: conformance.OverflowHarms, Why: "siw miscounts the references of such a listener: TestFaultBacklogOverflows"},
			conformance.Difference{What: conformance.DestroyAwaitsAnswer, Why: "iw_cm waits for it"},
		)
	}
	return conformance.Rig{
		Active: d, Passive: d,
		Address: addr(t, "RDMA_ADDR"), Second: addr(t, "RDMA_ADDR2"), Local: addr(t, "RDMA_ADDR2"), Other: addr(t, "RDMA_OTHER_ADDR"),
		NotLocal:    addr(t, "RDMA_SILENT_ADDR"),
		Silent:      addr(t, "RDMA_NOARP_ADDR"),
		NoRoute:     netip.MustParseAddr("2001:db8::1"),
		Plain:       addr(t, "RDMA_PLAIN_ADDR"),
		Privileged:  true,
		Datagrams:   kind == "rxe",
		Patience:    30 * time.Second,
		Differences: differences,
		RemoveDevice: func() {
			// it waits until nobody has the device open
			removed := startRDMA(t, "link", "del", device)
			t.Cleanup(func() {
				if err := removed(); err != nil {
					t.Errorf("removing %s: %v", device, err)
				}
				rdma(t, "link", "add", device, "type", kind, "netdev", netdev)
			})
		},
	}
}

func TestConformance(t *testing.T) { conformance.Run(t, rig) }
