package ucm

import (
	"net/netip"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
)

// cameTo makes the kernel report that requests come to ip.
func (b *bench) cameTo(ip string) {
	b.k.answer = func(w wrote, response []byte) error {
		if w.cmd == uabi.CommandQuery {
			const src = 16 // of struct rdma_ucm_query_addr_resp
			sa, err := kernelSockaddr(cmid.AddrFrom(netip.MustParseAddr(ip), 7471))
			if err != nil {
				return err
			}
			copy(response[src:], sa.Data[:])
		}
		return nil
	}
}

// TestLoopbackHearsLoopback: a listener on loopback is notified of requests to loopback; others
// are rejected, without a notification.
func TestLoopbackHearsLoopback(t *testing.T) {
	for _, c := range []struct {
		listener, request string
		delivered         bool
	}{
		{"127.0.0.1:7471", "10.0.0.7", false},
		{"127.0.0.1:7471", "127.0.0.1", true},
		{"127.0.0.2:7471", "127.0.0.1", true},
		{"[::1]:7471", "fe80::1", false},
		{"[::1]:7471", "::1", true},
		{"0.0.0.0:7471", "10.0.0.7", true},
		{"10.0.0.7:7471", "10.0.0.7", true},
	} {
		b := newBench(t)
		l := b.create()
		l.local = cmid.MustAddr(c.listener)
		b.cameTo(c.request)
		const child = 9
		b.happens(l.h, child, uabi.EventConnectRequest)
		if delivered := len(b.up.events) == 1; delivered != c.delivered {
			t.Errorf("a request to %s of a listener on %s: delivered is %v, want %v", c.request, c.listener, delivered, c.delivered)
		}
		if c.delivered {
			continue
		}
		b.until("the child's destruction", func() bool { return b.k.destroyed(child) == 1 })
		if reason := b.k.rejected(child); reason != int(cmid.RejectConsumerDefined) {
			t.Errorf("rejected with %d, want %d", reason, cmid.RejectConsumerDefined)
		}
	}
}

// rejected returns the reason that id was rejected with, -1 if it was not.
func (k *kernel) rejected(id uint32) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.wrote {
		if w.cmd == uabi.CommandReject && w.id == id {
			return int(w.arg[5]) // struct rdma_ucm_reject
		}
	}
	return -1
}
