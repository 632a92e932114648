package actor

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// A device may know of a connection's end before it reports the end, and refuse work requests
// until then. A Read of a large message that is refused for that reason is no fault of the peer's,
// who had offered the message properly: the end is reported with its real cause.
func TestResetWhileALargeMessageIsRead(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, near, far *kernelLike) {
		p := w.connect(IDConfig{MaxMessage: 8 << 20})
		far.refuse = fmt.Errorf("send while ended: %w", verbs.ErrQPState)
		p.client.send(p.c, NewSend(make([]byte, 8<<20)))
		settle()
		inject(w, p.s, func(*cmid.ID) *cmid.DriverEvent {
			return &cmid.DriverEvent{Kind: states.KindDisconnected, Status: -int32(unix.ECONNRESET)}
		})
		end := until[*Closed](p.server)
		err := end[len(end)-1].msg.(*Closed).Err
		if _, ok := errors.AsType[*ProtocolError](err); ok || !errors.Is(err, unix.ECONNRESET) {
			w.Errorf("a reset ended the connection with %v, want ECONNRESET", err)
		}
	})
}

// A one-sided operation that the device refuses for that reason has failed because of the
// connection's end. It is not malformed.
func TestOperationAfterTheEnd(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
		r := w.reach(kib)
		near.refuse = fmt.Errorf("send while ended: %w", verbs.ErrQPState)
		o := r.op(verbs.Write, 0, 1)
		w.onLoop(w.rt, func(l *loop) {
			if err := w.conn(l, r.c).OneSided(o); err != nil {
				w.Error(err)
			}
		})
		r.once(w, []*datapath.OneSided{o}, ErrFlushed)
		if errors.Is(r.errs[o], unix.EINVAL) {
			w.Errorf("%v, as if the Write were malformed", r.errs[o])
		}
	})
}
