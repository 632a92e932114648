package workload

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/rdmactor/rdmactor/rpc"
)

// numberKey is the key of the metadata with the number of a call that has no request.
const numberKey = "call"

func numbered(ctx context.Context, x *call) context.Context {
	return rpc.WithMetadata(ctx, numberKey, strconv.FormatUint(x.Number(), 10))
}

// requestOf returns the bytes that identify the call of a handler, as its request would; nil: it
// belongs to no call.
func (w *calls) requestOf(ctx context.Context) []byte {
	s, _ := rpc.Metadata(ctx, numberKey)
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n >= uint64(len(w.made)) {
		return nil
	}
	return w.made[n].Request()
}

// upload opens a stream of the client, and sends it.
func (me *caller) upload(ctx context.Context, c *rpc.Client, x *call) {
	up, err := rpc.OpenClientStream(numbered(ctx, x), c, uploadMethod)
	if err != nil {
		me.w.recordOutcome(x, nil, err)
		return
	}
	me.send(x, up.Send, up.CloseSend, up.Close)
	r, err := up.Receive()
	if err != nil {
		me.w.recordOutcome(x, nil, err)
		return
	}
	me.w.recordOutcome(x, *r, nil)
}

// bidi opens a stream in both directions, which it sends and receives at the same time.
func (me *caller) bidi(ctx context.Context, c *rpc.Client, x *call) {
	d, err := rpc.OpenBidiStream(numbered(ctx, x), c, bidiMethod)
	if err != nil {
		me.w.recordOutcome(x, nil, err)
		return
	}
	me.startGoroutine(func() { me.send(x, d.Send, d.CloseSend, d.Close) })
	me.receive(x, &d.Receiver)
}

// send sends the client's items, until the stream has ended.
func (me *caller) send(x *call, send func(*item) error, closeSend, leave func()) {
	w, o := me.w, x.op
	for range o.sends {
		if o.pause > 0 {
			me.p.Sleep(o.pause)
		}
		i := &item{b: x.uploads.Sending(w.World.Now(), o.request)}
		if o.at&1 == 0 {
			i.p = me.p
		}
		if err := send(i); err != nil {
			if rpc.CodeOf(err) == rpc.CodeTooLarge { // the stream goes on
				x.left = true
				leave()
			}
			return
		}
		x.uploads.Sent(w.World.Now())
	}
	if x.left = o.leaves; x.left {
		leave()
		return
	}
	x.uploads.Finished("")
	closeSend()
}

// upload is the handler of the client's streams. out is for the server's items; nil: there are
// none. It always calls done when it ends.
func (h *handling) upload(ctx context.Context, in *rpc.Receiver[item], out *rpc.Sender[item], done func()) (*call, error) {
	w := h.i.s.w
	x := h.recordBegin(ctx, w.requestOf(ctx))
	if x == nil {
		done()
		return nil, errors.New("nonsense")
	}
	o := x.op
	err := func() error {
		sent := 0
		answer := func(most int) error {
			for ; out != nil && sent < min(o.items, most); sent++ {
				if err := h.send(x, out); err != nil {
					return err
				}
			}
			return nil
		}
		for n := 0; n != o.reads; n++ {
			if o.sleep > 0 {
				h.p.Sleep(o.sleep)
			}
			i, err := in.Receive()
			if errors.Is(err, io.EOF) {
				x.uploads.Ended(w.World.Now(), "")
				break
			}
			if err != nil {
				w.excuseCall(x)
				x.Noticed(w.World.Now())
				return err
			}
			x.uploads.Item(w.World.Now(), i.b)
			if err := answer(n); err != nil {
				return err
			}
		}
		if err := answer(o.items); err != nil {
			return err
		}
		return h.misbehave(ctx, x, func() {
			done()
			x.items.Finished(codeName(rpc.CodeInternal))
		})
	}()
	done()
	x.items.Finished(errorForm(err))
	h.recordReturn(x, errorForm(err))
	return x, err
}

// send sends one of the server's items.
func (h *handling) send(x *call, out *rpc.Sender[item]) error {
	w := h.i.s.w
	if err := out.Send(&item{b: x.items.Sending(w.World.Now(), x.op.reply)}); err != nil {
		w.excuseCall(x)
		x.Noticed(w.World.Now())
		return err
	}
	if x.op.does != doBehind { // whose items are not entered when they are received
		x.items.Sent(w.World.Now())
	}
	return nil
}
