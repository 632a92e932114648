package conformance

import "github.com/rdmactor/rdmactor/verbs"

// immediateScenarios test Sends with immediate data over a connection.
var immediateScenarios = scenarios{
	"beside the bytes": func(w *world) {
		c := w.Connected(3)
		w.Must(c.AQ.Post(&verbs.SendWR{ID: 1, Op: verbs.SendWithImm, Flags: verbs.Signaled, Inline: []byte("one"), Imm: 0xdeadbeef}))
		w.Must(c.AQ.PostSend(2, "two"))
		w.Must(c.AQ.Post(&verbs.SendWR{ID: 3, Op: verbs.SendWithImm, Flags: verbs.Signaled}))
		w.Until("the messages", func() bool { return len(c.BQ.Of(verbs.Recv)) == 3 && len(c.AQ.Of(verbs.Send)) == 3 })
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
		c.BQ.CQ.ReqNotify(true)
		w.Must(c.AQ.PostSend(1, "quiet"))
		w.Must(c.AQ.Post(&verbs.SendWR{ID: 2, Op: verbs.SendWithImm, Flags: verbs.Solicited, Imm: 5}))
		w.Until("the notification", func() bool { return len(c.BQ.Of(verbs.Recv)) == 2 })
	},
}.where((*world).canImmediate)

// canImmediate reports whether the device has immediate data.
func (w *world) canImmediate() bool {
	w.Helper()
	return w.hasFeature(func(a verbs.DeviceAttr) bool { return a.Immediate }, &verbs.SendWR{Op: verbs.SendWithImm},
		&verbs.SendWR{Op: verbs.WriteWithImm})
}
