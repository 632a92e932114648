package ucm

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
)

// TestNoDeviceOnTheWay: an address to which no RDMA device leads fails with the interface that
// does.
func TestNoDeviceOnTheWay(t *testing.T) {
	b := newBench(t)
	id := b.create()
	if err := id.Do(&cmid.ResolveAddr{Dst: cmid.MustAddr("127.0.0.1:7471")}); err != nil {
		t.Fatal(err)
	}
	enodev := int32(unix.ENODEV)
	b.k.queue(uabi.EventResp{UID: uint64(id.h), ID: id.kid, Event: uabi.EventAddrError, Status: uint32(-enodev)})
	b.in.Ready(0)
	if len(b.up.events) != 1 || b.up.events[0].ev.Kind != states.KindAddrError {
		t.Fatalf("got %+v", b.up.events)
	}
	err := b.up.events[0].ev.Err
	if !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), "sends to 127.0.0.1 from 127.0.0.1 on lo, which is no RDMA device's") {
		t.Errorf("%v, want ENODEV and the interface", err)
	}
	if err := noDeviceTo(netip.Addr{}); !errors.Is(err, unix.ENODEV) {
		t.Errorf("nowhere: %v", err)
	}
}
