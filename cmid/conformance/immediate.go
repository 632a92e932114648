package conformance

import (
	"errors"

	"github.com/rdmactor/rdmactor/cmid/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// immediateScenarios are Sends with immediate data over a connection.
var immediateScenarios = scenarios{
	"beside the bytes": func(w *world) {
		c := w.Connected(3)
		if !w.canImmediate(c) {
			return
		}
		w.Must(c.AQ.QP.PostSend(&verbs.SendWR{ID: 1, Op: verbs.SendWithImm, Flags: verbs.Signaled, Inline: []byte("one"), Imm: 0xdeadbeef}))
		w.Must(c.AQ.PostSend(2, "two"))
		w.Must(c.AQ.QP.PostSend(&verbs.SendWR{ID: 3, Op: verbs.SendWithImm, Flags: verbs.Signaled}))
		w.Until("them", func() bool { return len(c.BQ.Of(verbs.Recv)) == 3 && len(c.AQ.Of(verbs.Send)) == 3 })
		for i, want := range []verbs.WC{{Bytes: 3, HasImm: true, Imm: 0xdeadbeef}, {Bytes: 3}, {HasImm: true}} {
			wc := c.BQ.Of(verbs.Recv)[i]
			if wc.Status != verbs.StatusSuccess || wc.Op != verbs.Recv || wc.Bytes != want.Bytes || wc.HasImm != want.HasImm ||
				want.HasImm && wc.Imm != want.Imm {
				w.Errorf("receive %d is %+v, want %d bytes, immediate data %v %#x", i, wc, want.Bytes, want.HasImm, want.Imm)
			}
		}
		if wc := c.AQ.Of(verbs.Send)[0]; wc.Op != verbs.SendWithImm || wc.Status != verbs.StatusSuccess || wc.Bytes != 3 {
			w.Errorf("the Send completed as %+v", wc)
		}
	},
	"solicited": func(w *world) {
		c := w.Connected(2)
		if !w.canImmediate(c) {
			return
		}
		c.BQ.CQ.ReqNotify(true)
		w.Must(c.AQ.PostSend(1, "quiet"))
		w.Must(c.AQ.QP.PostSend(&verbs.SendWR{ID: 2, Op: verbs.SendWithImm, Flags: verbs.Solicited, Imm: 5}))
		w.Until("the notification", func() bool { return len(c.BQ.Of(verbs.Recv)) == 2 })
	},
}

// canImmediate says whether the device has immediate data, and holds it to its word if not.
func (w *world) canImmediate(c *sides.Link) bool {
	w.Helper()
	if c.Active.Device().Attr().Immediate {
		return true
	}
	w.unsupported(c, &verbs.SendWR{Op: verbs.SendWithImm})
	return false
}

// unsupported posts what the device says it does not have.
func (w *world) unsupported(c *sides.Link, wr *verbs.SendWR) {
	w.Helper()
	if err := c.AQ.QP.PostSend(wr); !errors.Is(err, verbs.ErrNotSupported) {
		w.Errorf("%v: %v, want ErrNotSupported", wr.Op, err)
	}
	w.Settle()
	w.WantState("and nothing has happened", c.Active, states.Connected)
}
