package uverbs

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestDeviceEvents: events that are not a queue's are reported with their port, if a function is
// set. A fatal one ends the device's queue pairs.
func TestDeviceEvents(t *testing.T) {
	f := newFake(t)
	var heard []string
	all := []uint32{
		hca.EventPortActive, hca.EventPortError, hca.EventLIDChange, hca.EventPKeyChange, hca.EventSMChange, hca.EventReregister, hca.EventGIDChange,
	}
	for range 2 {
		for i, typ := range all {
			f.d.handleAsync(hca.Event{Type: typ, Object: uint64(i + 1)})
		}
		f.d.OnDeviceEvent(func(ev verbs.DeviceEvent, port int) { heard = append(heard, fmt.Sprint(ev, " ", port)) })
	}
	want := []string{
		"port active 1", "port error 2", "LID change 3", "PKey change 4", "subnet manager change 5", "client reregister 6", "GID change 7",
	}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q", heard)
	}
	if f.q.state != verbs.QPRTS {
		t.Error("a port's event has ended a queue pair")
	}
	heard = nil
	f.d.handleAsync(hca.Event{Type: hca.EventDeviceFail, Object: 77})
	if !slices.Equal(heard, []string{"device fatal 0"}) || f.d.lost != unix.ENODEV { //nolint:errorlint // that very one
		t.Errorf("heard %q, lost: %v", heard, f.d.lost)
	}
}
