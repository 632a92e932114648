package conformance

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/verbs"
)

// spans are ranges that one work request moves. Some are longer than a segment of any device, and
// most are at odd offsets.
var spans = []struct{ off, n int }{{0, 1}, {17, 4096}, {3, 200_000}, {200_003, 1}}

const spanned = 200_100

// memoryScenarios test RDMA Write and Read that are allowed.
var memoryScenarios = scenarios{
	"a Write is there when a later Send is received": func(w *world) {
		c := w.Connected(sides.Depth)
		from, to := w.Memory(c.AQ, spanned, 0, 1), w.Memory(c.BQ, spanned, verbs.LocalWrite|verbs.RemoteWrite, 2)
		want := bytes.Clone(to.Bytes)
		for i, s := range spans {
			w.Must(c.AQ.Write(i, verbs.Signaled, sides.Part(from, s.off, s.n), to, s.off))
			w.Barrier(c.AQ, c.BQ)
			copy(want[s.off:], from.Bytes[s.off:s.off+s.n])
			w.Same("the receive of a Send says that the Writes before it are there, and nothing beside them", to.Bytes, want)
		}
		w.Sent("Writes and Sends complete in posting order", c.AQ)
		if n := len(c.BQ.Of(verbs.Recv)); n != len(spans) {
			w.Errorf("%d receives for %d Sends: a Write has no completion at its target", n, len(spans))
		}
	},
	"a Read brings what is there": func(w *world) {
		c := w.Connected(0)
		from, to := w.Memory(c.BQ, spanned, verbs.RemoteRead, 1), w.Memory(c.AQ, spanned, verbs.LocalWrite, 2)
		want := bytes.Clone(to.Bytes)
		for i, s := range spans {
			w.Must(c.AQ.Read(i, verbs.Signaled, sides.Part(to, s.off, s.n), from, s.off))
			copy(want[s.off:], from.Bytes[s.off:s.off+s.n])
			w.Sent("a Read completes when its bytes are there", c.AQ)
			w.Same("a completed Read's bytes are in its memory, and nothing beside them", to.Bytes, want)
		}
		if len(c.BQ.Done) > 0 {
			w.Errorf("the target has completions %+v: a Read has no completion there", c.BQ.Done)
		}
	},
	"a Read sees the Writes before it": func(w *world) {
		c := w.Connected(0)
		from, far := w.Memory(c.AQ, spanned, 0, 1), w.Memory(c.BQ, spanned, sides.RemoteAll, 2)
		back := w.Memory(c.AQ, spanned, verbs.LocalWrite, 3)
		for _, s := range spans {
			c.AQ.Forget()
			w.Must(c.AQ.Write(1, verbs.Signaled, sides.Part(from, s.off, s.n), far, s.off))
			w.Must(c.AQ.Read(2, verbs.Signaled, sides.Part(back, s.off, s.n), far, s.off))
			w.Sent("Write, then Read", c.AQ)
			w.Same("a Read sees what Writes posted before it wrote", back.Bytes[s.off:s.off+s.n], from.Bytes[s.off:s.off+s.n])
		}
	},
	"both ways at once": func(w *world) {
		c := w.Connected(1)
		a, b := w.Memory(c.AQ, spanned, sides.RemoteAll, 1), w.Memory(c.BQ, spanned, sides.RemoteAll, 2)
		intoA, intoB := w.Memory(c.AQ, spanned, verbs.LocalWrite, 3), w.Memory(c.BQ, spanned, verbs.LocalWrite, 4)
		w.Must(c.AQ.Read(1, verbs.Signaled, sides.Part(intoA, 0, spanned), b, 0))
		w.Must(c.BQ.Read(1, verbs.Signaled, sides.Part(intoB, 0, spanned), a, 0))
		for _, q := range []*sides.Queues{c.AQ, c.BQ} {
			w.Must(q.PostSend(2, "meanwhile"))
			w.Sent("Reads and Sends of both sides share the wire", q)
		}
		w.Same("the active side's Read", intoA.Bytes, b.Bytes)
		w.Same("the passive side's Read", intoB.Bytes, a.Bytes)
	},
	"from several places": func(w *world) {
		c := w.ConnectedWith(sides.Setup{Recvs: 1, Active: func(_ verbs.Device, attr *verbs.QPInitAttr) { attr.MaxSGE = 3 }})
		from, far := w.Memory(c.AQ, 100_000, 0, 1), w.Memory(c.BQ, 100_000, sides.RemoteAll, 2)
		parts := []verbs.SGE{sides.Part(from, 90_001, 7), sides.Part(from, 5, 80_000), sides.Part(from, 0, 0)}
		want := bytes.Clone(far.Bytes)
		copy(want[11:], from.Bytes[90_001:90_008])
		copy(want[18:], from.Bytes[5:80_005])
		w.Must(c.AQ.Read(1, 0, sides.Part(c.AQ.MR, 0, sides.SlotSize), far, 0))
		wr := &verbs.SendWR{
			ID: 2, Op: verbs.Write, Flags: verbs.Fence, SGL: parts, RemoteAddr: far.Addr + 11, RKey: far.RKey,
		}
		w.Must(c.AQ.Post(wr))
		clear(parts)
		*wr = verbs.SendWR{}
		w.Barrier(c.AQ, c.BQ)
		w.Same("a Write's elements land one behind another, also when the request and its list are used again", far.Bytes, want)
	},
	"no bytes": func(w *world) {
		c := w.Connected(1)
		far, near := w.Memory(c.BQ, 64, sides.RemoteAll, 1), w.Memory(c.AQ, 64, verbs.LocalWrite, 2)
		keepFar, keepNear := bytes.Clone(far.Bytes), bytes.Clone(near.Bytes)
		for i, wr := range []*verbs.SendWR{
			{Op: verbs.Write, RemoteAddr: 0xdead, RKey: 0xbeef},
			{Op: verbs.Write, RemoteAddr: far.Addr + 1000, RKey: far.RKey, SGL: []verbs.SGE{sides.Part(near, 64, 0)}},
			{Op: verbs.Read, RemoteAddr: 1<<64 - 1, RKey: 0xbeef},
			{Op: verbs.Read, RemoteAddr: far.Addr + 1000, RKey: far.RKey, SGL: []verbs.SGE{sides.Part(near, 3, 0)}},
		} {
			wr.ID, wr.Flags = uint64(i), verbs.Signaled
			w.Must(c.AQ.Post(wr))
		}
		w.Sent("an access of no bytes checks nothing", c.AQ)
		w.Barrier(c.AQ, c.BQ)
		w.Same("an access of no bytes touches nothing of the target's", far.Bytes, keepFar)
		w.Same("nor of the requester's", near.Bytes, keepNear)
	},
	"inline Write": func(w *world) {
		c := w.Connected(1)
		far := w.Memory(c.BQ, 4096, sides.RemoteAll, 1)
		most := c.Active.Device().Attr().MaxInline
		text := bytes.Repeat([]byte("inline"), most/6+1)[:most]
		want := bytes.Clone(far.Bytes)
		copy(want[7:], text)
		copy(want[1007:], text)
		wr := &verbs.SendWR{ID: 1, Op: verbs.Write, Flags: verbs.Signaled, Inline: text, RemoteAddr: far.Addr + 7, RKey: far.RKey}
		w.Must(c.AQ.Post(wr))
		w.Must(c.AQ.Read(2, 0, sides.Part(c.AQ.MR, 0, sides.SlotSize), far, 0))
		wr.RemoteAddr, wr.Flags = far.Addr+1007, verbs.Fence
		w.Must(c.AQ.Post(wr))
		clear(text)
		w.Barrier(c.AQ, c.BQ)
		w.Same("inline bytes are copied by post_send, also when they leave later", far.Bytes, want)
		wr.Inline = make([]byte, most+1)
		w.WantErr("more inline bytes than the device says", c.AQ.Post(wr), unix.EINVAL)
		wr.Op, wr.Inline = verbs.Read, []byte("x")
		w.WantErr("an inline Read has nowhere to go", c.AQ.Post(wr), unix.EINVAL)
	},
	"unsignalled": func(w *world) {
		c := w.Connected(0)
		near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
		const rounds = 3
		for i := range rounds {
			for range sides.Depth/2 - 1 {
				w.Must(c.AQ.Write(1, 0, sides.Part(near, 0, 32), far, 0))
				w.Must(c.AQ.Read(2, 0, sides.Part(near, 32, 32), far, 0))
			}
			w.Must(c.AQ.Read(10+i, verbs.Signaled, sides.Part(near, 32, 32), far, 0))
			w.Sent("only what is signalled completes, and gives back the places of what was before it", c.AQ)
		}
	},
	"completions in posting order": func(w *world) {
		c := w.Connected(2)
		near, far := w.Memory(c.AQ, spanned, verbs.LocalWrite, 1), w.Memory(c.BQ, spanned, sides.RemoteAll, 2)
		w.Must(c.AQ.Read(1, verbs.Signaled, sides.Part(near, 0, spanned-8), far, 0))
		w.Must(c.AQ.PostSend(2, "Send"))
		w.Must(c.AQ.Write(3, verbs.Signaled, sides.Part(near, spanned-8, 8), far, spanned-8))
		w.Must(c.AQ.Read(4, verbs.Signaled, sides.Part(near, 0, 1), far, 0))
		w.Must(c.AQ.PostSend(5, "again"))
		w.Sent("a Send does not complete before a Read that was posted before it", c.AQ)
	},
	"a fence waits for Reads": func(w *world) {
		c := w.Connected(1)
		far, near := w.Memory(c.BQ, spanned, sides.RemoteAll, 1), w.Memory(c.AQ, spanned, verbs.LocalWrite, 2)
		text := "the Send of what a Read brings"
		copy(far.Bytes[spanned-sides.SlotSize:], text)
		w.Must(c.AQ.Read(1, verbs.Signaled, sides.Part(near, 0, spanned), far, 0))
		w.Must(c.AQ.Post(&verbs.SendWR{ // the bytes that the Read put at the end go to the front
			ID: 2, Op: verbs.Write, Flags: verbs.Signaled | verbs.Fence, SGL: []verbs.SGE{sides.Part(near, spanned-sides.SlotSize, sides.SlotSize)},
			RemoteAddr: far.Addr, RKey: far.RKey,
		}))
		w.Must(c.AQ.Post(&verbs.SendWR{
			ID: 3, Flags: verbs.Signaled | verbs.Fence, SGL: []verbs.SGE{sides.Part(near, spanned-sides.SlotSize, len(text))},
		}))
		w.Sent("Read, fenced Write, fenced Send", c.AQ)
		w.Until("the Send", func() bool { return len(c.BQ.Done) == 1 })
		w.Same("a fenced Send leaves after the Read before it has completed", c.BQ.Slot(0)[:len(text)], []byte(text))
		w.Same("so does a fenced Write", far.Bytes[:sides.SlotSize], far.Bytes[spanned-sides.SlotSize:])
	},
	"more Reads than may be outstanding": func(w *world) {
		two := &cmid.ConnParam{ResponderResources: 2, InitiatorDepth: 2, RetryCount: 7, RNRRetryCount: 7}
		c := w.ConnectedWith(sides.Setup{Recvs: 1, Connect: two, Accept: two})
		far := w.Memory(c.BQ, spanned, verbs.RemoteRead, 1)
		near := w.Memory(c.AQ, sides.Depth*20_000, verbs.LocalWrite, 2)
		for i := range sides.Depth {
			w.Must(c.AQ.Read(i, verbs.Signaled, sides.Part(near, i*20_000, 20_000), far, i))
		}
		w.Sent("Reads beyond the depth wait for those before them", c.AQ)
		for i := range sides.Depth {
			w.Same("each brings its own bytes", near.Bytes[i*20_000:(i+1)*20_000], far.Bytes[i:i+20_000])
		}
		w.Barrier(c.AQ, c.BQ)
	},
	"Reads where the peer serves none": func(w *world) {
		none := &cmid.ConnParam{InitiatorDepth: 4, RetryCount: 7, RNRRetryCount: 7}
		for _, s := range []sides.Setup{{Recvs: 1, Accept: none}, {Recvs: 1, Connect: none}} {
			c := w.ConnectedWith(s)
			from, to := c.AQ, c.BQ
			if s.Connect != nil {
				from, to = c.BQ, c.AQ
			}
			near, far := w.Memory(from, 8, verbs.LocalWrite, 1), w.Memory(to, 8, sides.RemoteAll, 2)
			err := from.Read(1, verbs.Signaled, sides.Part(near, 0, 8), far, 0)
			if s.Accept != nil && w.hasDeviation(AcceptServesAsked) {
				w.Must(err)
				w.Sent("a Read that accept did not want to serve", from)
				w.Same("and what it brings", near.Bytes, far.Bytes)
				continue
			}
			w.WantErr("a Read that the peer would have to refuse", err, unix.EINVAL)
			w.Must(from.Write(2, 0, sides.Part(near, 0, 8), far, 0))
			w.Barrier(from, to)
			w.Same("Writes need no depth", far.Bytes, near.Bytes)
		}
	},
	"Reads wanted by nobody": func(w *world) {
		c := w.ConnectedWith(sides.Setup{Recvs: 1, Connect: &cmid.ConnParam{ResponderResources: 4, RetryCount: 7, RNRRetryCount: 7}})
		near, far := w.Memory(c.AQ, 8, verbs.LocalWrite, 1), w.Memory(c.BQ, 8, sides.RemoteAll, 2)
		w.WantErr("a Read of one who has asked for none", c.AQ.Read(1, verbs.Signaled, sides.Part(near, 0, 8), far, 0), unix.EINVAL)
		w.Barrier(c.AQ, c.BQ)
	},
	"flush of Reads": func(w *world) {
		c := w.Connected(0)
		near, far := w.Memory(c.AQ, sides.Depth, verbs.LocalWrite, 1), w.Memory(c.BQ, sides.Depth, sides.RemoteAll, 2)
		var done []verbs.WC
		for i := range sides.Depth - 1 {
			w.Must(c.AQ.Read(i, 0, sides.Part(near, i, 1), far, i))
			done = append(done, verbs.WC{ID: uint64(i), Op: verbs.Read, Status: verbs.StatusFlushed})
		}
		w.Must(c.AQ.Write(sides.Depth, 0, sides.Part(near, 0, 1), far, 0))
		done = append(done, verbs.WC{ID: sides.Depth, Op: verbs.Write, Status: verbs.StatusFlushed})
		w.Must(c.Passive.Disconnect())
		sides.Next[*cmid.Disconnected](w.A, c.Active)
		w.Answer(c.Active)
		sides.Next[*cmid.Disconnected](w.B, c.Passive)
		w.Sent("Reads that nobody has answered complete as flushed, unsignalled ones too, and so does what is behind them", c.AQ, done...)
		w.Settle()
		w.Sent("once", c.AQ, done...)
	},
	"nothing comes after the flush": func(w *world) {
		c := w.Connected(0)
		near, far := w.Memory(c.AQ, spanned, verbs.LocalWrite, 1), w.Memory(c.BQ, spanned, sides.RemoteAll, 2)
		keep := bytes.Clone(near.Bytes)
		w.Must(c.AQ.Read(1, verbs.Signaled, sides.Part(near, 0, spanned), far, 0))
		w.Must(c.AQ.Read(2, verbs.Signaled, sides.Part(near, 0, spanned), far, 0))
		w.Must(w.A.Loop.Turn()) // the Reads leave
		active, passive := w.Disconnect(c)
		if w.Clock == nil { // a device may be quicker than the disconnect
			keep = bytes.Clone(near.Bytes)
		}
		w.Settle()
		if passive.Err != nil || active.Err != nil {
			w.Errorf("disconnected with %v and %v: answers to Reads that were flushed are no fault", passive.Err, active.Err)
		}
		flushed := []verbs.WC{{ID: 1, Op: verbs.Read, Status: verbs.StatusFlushed}, {ID: 2, Op: verbs.Read, Status: verbs.StatusFlushed}}
		if w.Clock == nil {
			for i := range min(sides.Succeeded(c.AQ.Of(verbs.Send)), 2) {
				flushed[i].Status, flushed[i].Bytes = verbs.StatusSuccess, spanned
				w.Same("a Read that was answered in time", near.Bytes, far.Bytes)
			}
		}
		w.Sent("who disconnects does not wait for Reads", c.AQ, flushed...)
		w.Same("a flushed Read's memory is its owner's again, whatever is still on its way", near.Bytes, keep)
	},
	"mixed": testMixed,
}
