package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// This file has what scenarios of several manual pages share.

const (
	tcp = cmid.PortSpaceTCP
	udp = cmid.PortSpaceUDP
)

// Constants of InfiniBand that events and attributes contain.
const (
	globalQKey              = 0x01234567 // RDMA_UDP_QKEY
	pathUsable              = 0x2b       // a path record's flags: GMP, primary, bidirectional
	remoteWrite, remoteRead = 2, 4       // enum ibv_access_flags
	udConnect               = 180        // private data of a service lookup
)

// hasFeature reports whether the device has a feature. If not, it requires that the device
// refuses the work requests that would use it.
func (w *world) hasFeature(has func(verbs.DeviceAttr) bool, uses ...*verbs.SendWR) bool {
	w.Helper()
	if sides.Probe(w.World, func(id *cmid.ID) bool { return has(id.Device().Attr()) }) {
		return true
	}
	c := w.Connected(0)
	for _, wr := range uses {
		if err := c.AQ.Post(wr); !errors.Is(err, verbs.ErrNotSupported) || !errors.Is(err, unix.EOPNOTSUPP) {
			w.Errorf("%v: %v, want ErrNotSupported and EOPNOTSUPP", wr.Op, err)
		}
		w.Settle()
		w.WantState("and nothing has happened", c.Active, states.Connected)
	}
	return false
}

// foreignMemory makes memory in a protection domain that has no queue pair.
func (w *world) foreignMemory(id *cmid.ID, n int, access verbs.Access) *verbs.MR {
	w.Helper()
	return sides.Got(sides.Got(id.Device().AllocPD())(w).Alloc(n, access))(w)
}

// somePath returns a path record with nothing but the flags that mark it as usable. rdma_cm looks
// at nothing else.
func somePath() []byte {
	b := make([]byte, cmid.PathLen)
	binary.NativeEndian.PutUint32(b, pathUsable)
	return b
}

// doCommand returns the failure of a command that fails immediately.
func doCommand(id *cmid.ID, cmd cmid.Command) (err error) {
	id.Do(cmd, func(ev cmid.Event) {
		if f, ok := ev.(cmid.Failure); ok {
			err = f
		}
	})
	return err
}

// wantQPState requires that a queue pair has refused a work request because of its state, not
// because of the request.
func (w *world) wantQPState(what string, err error) {
	w.Helper()
	w.WantErr(what, err, unix.EINVAL)
	if !errors.Is(err, verbs.ErrQPState) {
		w.Errorf("%s: %v, want ErrQPState", what, err)
	}
}

// wantFlushed requires that the n receives that were posted have completed as flushed, in order.
func (w *world) wantFlushed(side string, q *sides.Queues, n int) {
	w.Helper()
	wc := q.Of(verbs.Recv)
	if len(wc) != n {
		w.Fatalf("%s: %d completions of %d receives", side, len(wc), n)
	}
	for i := range wc {
		if wc[i].Status != verbs.StatusFlushed || wc[i].ID != uint64(100+i) {
			w.Errorf("%s: receive %d is %+v, want flushed, in order", side, i, wc[i])
		}
	}
}

// wantNone requires that a side has no event left.
func (w *world) wantNone(why string, e *sides.Side) {
	w.Helper()
	if len(e.Heard) > 0 {
		w.Errorf("%s was notified of %v", why, e.Pending())
	}
}

// connectAll connects n identifiers, and returns them by their private data.
func (w *world) connectAll(n int) map[string]*cmid.ID {
	w.Helper()
	ids := make(map[string]*cmid.ID)
	for i := range n {
		id := w.Resolved(tcp, w.Target())
		w.Queues(id, 0)
		ids[fmt.Sprintf("client %d", i)] = id
	}
	for name, id := range ids {
		w.Must(id.Connect([]byte(name), nil))
	}
	return ids
}
