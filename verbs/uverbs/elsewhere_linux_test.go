package uverbs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// opened is a provider that records its requests.
type opened struct{ ids *[]verbs.DeviceIdent }

var errOpened = errors.New("opened")

func (o opened) Open(_ *eventloop.Loop, id verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	*o.ids = append(*o.ids, id)
	return nil, errOpened
}

// TestOtherDevices: a device of another driver is opened through libibverbs if that is linked in,
// else the error names the package to import. Other errors are returned unchanged.
func TestOtherDevices(t *testing.T) {
	id := verbs.DeviceIdent{Name: "mlx5_0", GUID: 7}
	other := &OtherDeviceError{Vendor: 0x2c9}
	for _, e := range []*OtherDeviceError{{Vendor: 0x2c9}, {Driver: "mlx5"}, {Err: unix.EINVAL}} {
		if text := e.Error(); !errors.Is(e, verbs.ErrNotSupported) || !strings.Contains(text, "neither rxe nor siw: import _") ||
			!strings.Contains(text, e.Driver) || (e.Err != nil) != strings.Contains(text, "invalid argument") {
			t.Errorf("%s", text)
		}
	}
	_, err := openElsewhere(nil, id, other)
	if !errors.Is(err, verbs.ErrNotSupported) || !strings.Contains(err.Error(), `mlx5_0`) ||
		!strings.Contains(err.Error(), `import _ "github.com/rdmactor/rdmactor/native"`) {
		t.Errorf("%v", err)
	}
	var ids []verbs.DeviceIdent
	hca.SetLibrary(opened{&ids})
	t.Cleanup(func() { hca.SetLibrary(nil) })
	if _, err := openElsewhere(nil, id, other); !errors.Is(err, errOpened) || len(ids) != 1 || ids[0] != id {
		t.Errorf("%v, opened %v", err, ids)
	}
	if _, err := openElsewhere(nil, id, unix.EACCES); !errors.Is(err, unix.EACCES) || len(ids) != 1 {
		t.Errorf("%v, opened %v", err, ids)
	}
}

// TestWhoseDriver: the kernel's number of a driver decides. Without one, the device does: rxe and
// siw never refuse a context.
func TestWhoseDriver(t *testing.T) {
	for driver, want := range map[uint32]bool{0: true, 14: true, 18: true, 1: false, 9: false, 99: false} {
		if isDriven(driver) != want {
			t.Errorf("driver %d is ours: %v", driver, !want)
		}
	}
	for err, want := range map[error]bool{unix.EINVAL: true, unix.EOPNOTSUPP: true, unix.EACCES: false, unix.ENODEV: false, unix.ENOMEM: false} {
		var other *OtherDeviceError
		if got := refusedContext(fmt.Errorf("get_context: %w", err)); errors.As(got, &other) != want {
			t.Errorf("%v", got)
		}
	}
}

// droppable is a send queue that counts how often it is dropped.
type droppable struct {
	hca.SendQueue
	drops int
}

func (q *droppable) Drop() { q.drops++ }

// TestDestroyLaterDropsSends: a library must get no further sends for a queue pair that is being
// destroyed off the loop.
func TestDestroyLaterDropsSends(t *testing.T) {
	f := newFake(t)
	f.d.hw = kernelOf(t, os.DevNull)
	q := &droppable{SendQueue: f.q.sq}
	f.q.sq = q
	later := f.q.DestroyLater()
	if q.drops != 1 {
		t.Errorf("dropped %d times before the wait", q.drops)
	}
	f.must(later.End(later.Wait()))
}
