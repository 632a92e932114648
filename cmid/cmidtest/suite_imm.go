package cmidtest

import (
	"errors"

	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// immediateScenarios are Sends with immediate data over a connection.
var immediateScenarios = scenarios{
	"beside the bytes": func(w *world) {
		c := w.connected(3)
		if !w.canImmediate(c) {
			return
		}
		w.must(c.aq.qp.PostSend(&verbs.SendWR{ID: 1, Op: verbs.SendWithImm, Flags: verbs.Signaled, Inline: []byte("one"), Imm: 0xdeadbeef}))
		w.must(c.aq.postSend(2, "two"))
		w.must(c.aq.qp.PostSend(&verbs.SendWR{ID: 3, Op: verbs.SendWithImm, Flags: verbs.Signaled}))
		w.until("them", func() bool { return len(c.bq.of(verbs.Recv)) == 3 && len(c.aq.of(verbs.Send)) == 3 })
		for i, want := range []verbs.WC{{Bytes: 3, HasImm: true, Imm: 0xdeadbeef}, {Bytes: 3}, {HasImm: true}} {
			wc := c.bq.of(verbs.Recv)[i]
			if wc.Status != verbs.StatusSuccess || wc.Op != verbs.Recv || wc.Bytes != want.Bytes || wc.HasImm != want.HasImm ||
				want.HasImm && wc.Imm != want.Imm {
				w.Errorf("receive %d is %+v, want %d bytes, immediate data %v %#x", i, wc, want.Bytes, want.HasImm, want.Imm)
			}
		}
		if wc := c.aq.of(verbs.Send)[0]; wc.Op != verbs.SendWithImm || wc.Status != verbs.StatusSuccess || wc.Bytes != 3 {
			w.Errorf("the Send completed as %+v", wc)
		}
	},
	"solicited": func(w *world) {
		c := w.connected(2)
		if !w.canImmediate(c) {
			return
		}
		c.bq.cq.ReqNotify(true)
		w.must(c.aq.postSend(1, "quiet"))
		w.must(c.aq.qp.PostSend(&verbs.SendWR{ID: 2, Op: verbs.SendWithImm, Flags: verbs.Solicited, Imm: 5}))
		w.until("the notification", func() bool { return len(c.bq.of(verbs.Recv)) == 2 })
	},
}

// canImmediate says whether the device has immediate data, and holds it to its word if not.
func (w *world) canImmediate(c *link) bool {
	w.Helper()
	if c.active.Device().Attr().Immediate {
		return true
	}
	w.unsupported(c, &verbs.SendWR{Op: verbs.SendWithImm})
	return false
}

// unsupported posts what the device says it does not have.
func (w *world) unsupported(c *link, wr *verbs.SendWR) {
	w.Helper()
	if err := c.aq.qp.PostSend(wr); !errors.Is(err, verbs.ErrNotSupported) {
		w.Errorf("%v: %v, want ErrNotSupported", wr.Op, err)
	}
	w.settle()
	w.wantState("and nothing has happened", c.active, states.Connected)
}
