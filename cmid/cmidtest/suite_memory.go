package cmidtest

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// remoteAll is memory that peers may write and read.
const remoteAll = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead

// memory is a region of n bytes in q's domain; no two bytes near each other are alike, and seed makes it another one's.
func (w *world) memory(q *rings, n int, access verbs.Access, seed byte) *verbs.MR {
	w.Helper()
	mr, err := q.pd.Alloc(n, access)
	w.must(err)
	for i := range mr.Bytes {
		mr.Bytes[i] = byte(i) ^ byte(i>>8) ^ seed
	}
	return mr
}

// part is some bytes of a region.
func part(mr *verbs.MR, off, n int) verbs.SGE {
	return verbs.SGE{MR: mr, Offset: uint32(off), Length: uint32(n)}
}

// write posts a Write of from to a peer's region, at off.
func (q *rings) write(id int, flags verbs.SendFlags, from verbs.SGE, to *verbs.MR, off int) error {
	return q.qp.PostSend(&verbs.SendWR{
		ID: uint64(id), Op: verbs.Write, Flags: flags, SGL: []verbs.SGE{from}, RemoteAddr: to.Addr + uint64(off), RKey: to.RKey,
	})
}

// read posts a Read of a peer's region, from off on, into into.
func (q *rings) read(id int, flags verbs.SendFlags, into verbs.SGE, from *verbs.MR, off int) error {
	return q.qp.PostSend(&verbs.SendWR{
		ID: uint64(id), Op: verbs.Read, Flags: flags, SGL: []verbs.SGE{into}, RemoteAddr: from.Addr + uint64(off), RKey: from.RKey,
	})
}

// sent waits until q's send queue has completed as wanted, oldest first, and nothing else has completed there.
func (w *world) sent(why string, q *rings, want ...verbs.WC) {
	w.Helper()
	w.until(why, func() bool { return len(q.of(verbs.Send)) >= len(want) })
	got := q.of(verbs.Send)
	for i := range want {
		want[i].QP = q.qp
		if got[i] != want[i] {
			w.Errorf("%s: completion %d is %+v, want %+v", why, i, got[i], want[i])
		}
	}
	if len(got) > len(want) {
		w.Errorf("%s: %d completions more than were asked for: %+v", why, len(got)-len(want), got[len(want):])
	}
}

// told is a Send, told by its receive: what its sender has posted before it is done at the receiver.
func (w *world) told(from, to *rings) {
	w.Helper()
	n := len(to.of(verbs.Recv))
	w.must(from.postSend(99, "told"))
	w.until("the Send behind", func() bool { return len(to.of(verbs.Recv)) > n })
	if wc := to.of(verbs.Recv)[n]; wc.Status != verbs.StatusSuccess {
		w.Errorf("a Send on a connection that works was received as %+v", wc)
	}
}

// same holds memory against what it should be.
func (w *world) same(why string, got, want []byte) {
	w.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := range want {
		if got[i] != want[i] {
			w.Errorf("%s: byte %d of %d is %#x, want %#x", why, i, len(want), got[i], want[i])
			return
		}
	}
}

// spans are what one work request moves: more than a segment of any device, and at odd places.
var spans = []struct{ off, n int }{{0, 1}, {17, 4096}, {3, 200_000}, {200_003, 1}}

const spanned = 200_100

// memoryScenarios are RDMA Write and Read where they are allowed.
var memoryScenarios = scenarios{
	"a Write is there when a later Send is received": func(w *world) {
		c := w.connected(ringDepth)
		from, to := w.memory(c.aq, spanned, 0, 1), w.memory(c.bq, spanned, verbs.LocalWrite|verbs.RemoteWrite, 2)
		want := bytes.Clone(to.Bytes)
		var done []verbs.WC
		for i, s := range spans {
			w.must(c.aq.write(i, verbs.Signaled, part(from, s.off, s.n), to, s.off))
			done = append(done, verbs.WC{ID: uint64(i), Op: verbs.Write, Bytes: uint32(s.n)})
			w.told(c.aq, c.bq)
			done = append(done, verbs.WC{ID: 99, Op: verbs.Send, Bytes: 4})
			copy(want[s.off:], from.Bytes[s.off:s.off+s.n])
			w.same("the receive of a Send says that the Writes before it are there, and nothing beside them", to.Bytes, want)
		}
		w.sent("Writes and Sends complete in posting order", c.aq, done...)
		if n := len(c.bq.of(verbs.Recv)); n != len(spans) {
			w.Errorf("%d receives for %d Sends: a Write has no completion at its target", n, len(spans))
		}
	},
	"a Read brings what is there": func(w *world) {
		c := w.connected(0)
		from, to := w.memory(c.bq, spanned, verbs.RemoteRead, 1), w.memory(c.aq, spanned, verbs.LocalWrite, 2)
		want := bytes.Clone(to.Bytes)
		var done []verbs.WC
		for i, s := range spans {
			w.must(c.aq.read(i, verbs.Signaled, part(to, s.off, s.n), from, s.off))
			done = append(done, verbs.WC{ID: uint64(i), Op: verbs.Read, Bytes: uint32(s.n)})
			copy(want[s.off:], from.Bytes[s.off:s.off+s.n])
			w.sent("a Read completes when its bytes are there", c.aq, done...)
			w.same("a completed Read's bytes are in its memory, and nothing beside them", to.Bytes, want)
		}
		if len(c.bq.done) > 0 {
			w.Errorf("the target was told %+v: a Read has no completion there", c.bq.done)
		}
	},
	"a Read sees the Writes before it": func(w *world) {
		c := w.connected(0)
		from, far := w.memory(c.aq, spanned, 0, 1), w.memory(c.bq, spanned, remoteAll, 2)
		back := w.memory(c.aq, spanned, verbs.LocalWrite, 3)
		for _, s := range spans {
			c.aq.done = nil
			w.must(c.aq.write(1, verbs.Signaled, part(from, s.off, s.n), far, s.off))
			w.must(c.aq.read(2, verbs.Signaled, part(back, s.off, s.n), far, s.off))
			w.sent("Write, then Read", c.aq,
				verbs.WC{ID: 1, Op: verbs.Write, Bytes: uint32(s.n)}, verbs.WC{ID: 2, Op: verbs.Read, Bytes: uint32(s.n)})
			w.same("a Read sees what Writes posted before it wrote", back.Bytes[s.off:s.off+s.n], from.Bytes[s.off:s.off+s.n])
		}
	},
	"both ways at once": func(w *world) {
		c := w.connected(1)
		a, b := w.memory(c.aq, spanned, remoteAll, 1), w.memory(c.bq, spanned, remoteAll, 2)
		intoA, intoB := w.memory(c.aq, spanned, verbs.LocalWrite, 3), w.memory(c.bq, spanned, verbs.LocalWrite, 4)
		w.must(c.aq.read(1, verbs.Signaled, part(intoA, 0, spanned), b, 0))
		w.must(c.bq.read(1, verbs.Signaled, part(intoB, 0, spanned), a, 0))
		for _, q := range []*rings{c.aq, c.bq} {
			w.must(q.postSend(2, "meanwhile"))
			w.sent("Reads and Sends of both sides share the wire", q,
				verbs.WC{ID: 1, Op: verbs.Read, Bytes: spanned}, verbs.WC{ID: 2, Op: verbs.Send, Bytes: 9})
		}
		w.same("the active side's Read", intoA.Bytes, b.Bytes)
		w.same("the passive side's Read", intoB.Bytes, a.Bytes)
	},
	"from several places": func(w *world) {
		c := w.connectedWith(setup{recvs: 1, active: func(_ verbs.Device, attr *verbs.QPInitAttr) { attr.MaxSGE = 3 }})
		from, far := w.memory(c.aq, 100_000, 0, 1), w.memory(c.bq, 100_000, remoteAll, 2)
		parts := []verbs.SGE{part(from, 90_001, 7), part(from, 5, 80_000), part(from, 0, 0)}
		want := bytes.Clone(far.Bytes)
		copy(want[11:], from.Bytes[90_001:90_008])
		copy(want[18:], from.Bytes[5:80_005])
		w.must(c.aq.read(1, 0, part(c.aq.mr, 0, slotSize), far, 0))
		wr := &verbs.SendWR{
			ID: 2, Op: verbs.Write, Flags: verbs.Fence, SGL: parts, RemoteAddr: far.Addr + 11, RKey: far.RKey,
		}
		w.must(c.aq.qp.PostSend(wr))
		clear(parts)
		*wr = verbs.SendWR{}
		w.told(c.aq, c.bq)
		w.same("a Write's elements land one behind another, also when the request and its list are used again", far.Bytes, want)
	},
	"no bytes": func(w *world) {
		c := w.connected(1)
		far, near := w.memory(c.bq, 64, remoteAll, 1), w.memory(c.aq, 64, verbs.LocalWrite, 2)
		keepFar, keepNear := bytes.Clone(far.Bytes), bytes.Clone(near.Bytes)
		for i, wr := range []*verbs.SendWR{
			{Op: verbs.Write, RemoteAddr: 0xdead, RKey: 0xbeef},
			{Op: verbs.Write, RemoteAddr: far.Addr + 1000, RKey: far.RKey, SGL: []verbs.SGE{part(near, 64, 0)}},
			{Op: verbs.Read, RemoteAddr: 1<<64 - 1, RKey: 0xbeef},
			{Op: verbs.Read, RemoteAddr: far.Addr + 1000, RKey: far.RKey, SGL: []verbs.SGE{part(near, 3, 0)}},
		} {
			wr.ID, wr.Flags = uint64(i), verbs.Signaled
			w.must(c.aq.qp.PostSend(wr))
		}
		w.sent("an access of no bytes checks nothing", c.aq,
			verbs.WC{ID: 0, Op: verbs.Write}, verbs.WC{ID: 1, Op: verbs.Write}, verbs.WC{ID: 2, Op: verbs.Read}, verbs.WC{ID: 3, Op: verbs.Read})
		w.told(c.aq, c.bq)
		w.same("an access of no bytes touches nothing of the target's", far.Bytes, keepFar)
		w.same("nor of the requester's", near.Bytes, keepNear)
	},
	"inline Write": func(w *world) {
		c := w.connected(1)
		far := w.memory(c.bq, 4096, remoteAll, 1)
		most := c.active.Device().Attr().MaxInline
		text := bytes.Repeat([]byte("inline"), most/6+1)[:most]
		want := bytes.Clone(far.Bytes)
		copy(want[7:], text)
		copy(want[1007:], text)
		wr := &verbs.SendWR{ID: 1, Op: verbs.Write, Flags: verbs.Signaled, Inline: text, RemoteAddr: far.Addr + 7, RKey: far.RKey}
		w.must(c.aq.qp.PostSend(wr))
		w.must(c.aq.read(2, 0, part(c.aq.mr, 0, slotSize), far, 0))
		wr.RemoteAddr, wr.Flags = far.Addr+1007, verbs.Fence
		w.must(c.aq.qp.PostSend(wr))
		clear(text)
		w.told(c.aq, c.bq)
		w.same("inline bytes are copied by post_send, also when they leave later", far.Bytes, want)
		wr.Inline = make([]byte, most+1)
		w.wantErr("more inline bytes than the device says", c.aq.qp.PostSend(wr), unix.EINVAL)
		wr.Op, wr.Inline = verbs.Read, []byte("x")
		w.wantErr("an inline Read has nowhere to go", c.aq.qp.PostSend(wr), unix.EINVAL)
	},
	"unsignalled": func(w *world) {
		c := w.connected(0)
		near, far := w.memory(c.aq, 64, verbs.LocalWrite, 1), w.memory(c.bq, 64, remoteAll, 2)
		const rounds = 3
		var done []verbs.WC
		for i := range rounds {
			for range ringDepth/2 - 1 {
				w.must(c.aq.write(1, 0, part(near, 0, 32), far, 0))
				w.must(c.aq.read(2, 0, part(near, 32, 32), far, 0))
			}
			w.must(c.aq.read(10+i, verbs.Signaled, part(near, 32, 32), far, 0))
			done = append(done, verbs.WC{ID: uint64(10 + i), Op: verbs.Read, Bytes: 32})
			w.sent("only what is signalled completes, and gives back the places of what was before it", c.aq, done...)
		}
	},
	"completions in posting order": func(w *world) {
		c := w.connected(2)
		near, far := w.memory(c.aq, spanned, verbs.LocalWrite, 1), w.memory(c.bq, spanned, remoteAll, 2)
		w.must(c.aq.read(1, verbs.Signaled, part(near, 0, spanned-8), far, 0))
		w.must(c.aq.postSend(2, "Send"))
		w.must(c.aq.write(3, verbs.Signaled, part(near, spanned-8, 8), far, spanned-8))
		w.must(c.aq.read(4, verbs.Signaled, part(near, 0, 1), far, 0))
		w.must(c.aq.postSend(5, "again"))
		w.sent("a Send does not complete before a Read that was posted before it", c.aq,
			verbs.WC{ID: 1, Op: verbs.Read, Bytes: spanned - 8}, verbs.WC{ID: 2, Op: verbs.Send, Bytes: 4},
			verbs.WC{ID: 3, Op: verbs.Write, Bytes: 8}, verbs.WC{ID: 4, Op: verbs.Read, Bytes: 1}, verbs.WC{ID: 5, Op: verbs.Send, Bytes: 5})
	},
	"a fence waits for Reads": func(w *world) {
		c := w.connected(1)
		far, near := w.memory(c.bq, spanned, remoteAll, 1), w.memory(c.aq, spanned, verbs.LocalWrite, 2)
		text := "the Send of what a Read brings"
		copy(far.Bytes[spanned-slotSize:], text)
		w.must(c.aq.read(1, verbs.Signaled, part(near, 0, spanned), far, 0))
		w.must(c.aq.qp.PostSend(&verbs.SendWR{ // what the Read has put at the end goes to the front
			ID: 2, Op: verbs.Write, Flags: verbs.Signaled | verbs.Fence, SGL: []verbs.SGE{part(near, spanned-slotSize, slotSize)},
			RemoteAddr: far.Addr, RKey: far.RKey,
		}))
		w.must(c.aq.qp.PostSend(&verbs.SendWR{
			ID: 3, Flags: verbs.Signaled | verbs.Fence, SGL: []verbs.SGE{part(near, spanned-slotSize, len(text))},
		}))
		w.sent("Read, fenced Write, fenced Send", c.aq, verbs.WC{ID: 1, Op: verbs.Read, Bytes: spanned},
			verbs.WC{ID: 2, Op: verbs.Write, Bytes: slotSize}, verbs.WC{ID: 3, Op: verbs.Send, Bytes: uint32(len(text))})
		w.until("the Send", func() bool { return len(c.bq.done) == 1 })
		w.same("a fenced Send leaves after the Read before it has completed", c.bq.slot(0)[:len(text)], []byte(text))
		w.same("so does a fenced Write", far.Bytes[:slotSize], far.Bytes[spanned-slotSize:])
	},
	"more Reads than may be outstanding": func(w *world) {
		two := &cmid.ConnParam{ResponderResources: 2, InitiatorDepth: 2, RetryCount: 7, RNRRetryCount: 7}
		c := w.connectedWith(setup{recvs: 1, connect: two, accept: two})
		far := w.memory(c.bq, spanned, verbs.RemoteRead, 1)
		near := w.memory(c.aq, ringDepth*20_000, verbs.LocalWrite, 2)
		var done []verbs.WC
		for i := range ringDepth {
			w.must(c.aq.read(i, verbs.Signaled, part(near, i*20_000, 20_000), far, i))
			done = append(done, verbs.WC{ID: uint64(i), Op: verbs.Read, Bytes: 20_000})
		}
		w.sent("Reads beyond the depth wait for those before them", c.aq, done...)
		for i := range ringDepth {
			w.same("each brings its own bytes", near.Bytes[i*20_000:(i+1)*20_000], far.Bytes[i:i+20_000])
		}
		w.told(c.aq, c.bq)
	},
	"Reads where the peer serves none": func(w *world) {
		none := &cmid.ConnParam{InitiatorDepth: 4, RetryCount: 7, RNRRetryCount: 7}
		for _, s := range []setup{{recvs: 1, accept: none}, {recvs: 1, connect: none}} {
			c := w.connectedWith(s)
			from, to := c.aq, c.bq
			if s.connect != nil {
				from, to = c.bq, c.aq
			}
			near, far := w.memory(from, 8, verbs.LocalWrite, 1), w.memory(to, 8, remoteAll, 2)
			err := from.read(1, verbs.Signaled, part(near, 0, 8), far, 0)
			if s.accept != nil && w.differs(AcceptServesAsked) {
				w.must(err)
				w.sent("a Read that accept did not want to serve", from, verbs.WC{ID: 1, Op: verbs.Read, Bytes: 8})
				w.same("and what it brings", near.Bytes, far.Bytes)
				continue
			}
			w.wantErr("a Read that the peer would have to refuse", err, unix.EINVAL)
			w.must(from.write(2, 0, part(near, 0, 8), far, 0))
			w.told(from, to)
			w.same("Writes need no depth", far.Bytes, near.Bytes)
		}
	},
	"Reads wanted by nobody": func(w *world) {
		c := w.connectedWith(setup{recvs: 1, connect: &cmid.ConnParam{ResponderResources: 4, RetryCount: 7, RNRRetryCount: 7}})
		near, far := w.memory(c.aq, 8, verbs.LocalWrite, 1), w.memory(c.bq, 8, remoteAll, 2)
		w.wantErr("a Read of one who has asked for none", c.aq.read(1, verbs.Signaled, part(near, 0, 8), far, 0), unix.EINVAL)
		w.told(c.aq, c.bq)
	},
	"flush of Reads": func(w *world) {
		c := w.connected(0)
		near, far := w.memory(c.aq, ringDepth, verbs.LocalWrite, 1), w.memory(c.bq, ringDepth, remoteAll, 2)
		var done []verbs.WC
		for i := range ringDepth - 1 {
			w.must(c.aq.read(i, 0, part(near, i, 1), far, i))
			done = append(done, verbs.WC{ID: uint64(i), Op: verbs.Read, Status: verbs.StatusFlushed})
		}
		w.must(c.aq.write(ringDepth, 0, part(near, 0, 1), far, 0))
		done = append(done, verbs.WC{ID: ringDepth, Op: verbs.Write, Status: verbs.StatusFlushed})
		w.must(c.passive.Disconnect())
		next[*cmid.Disconnected](w.a, c.active)
		if !w.iwarp {
			w.must(c.active.Disconnect())
		}
		next[*cmid.Disconnected](w.b, c.passive)
		w.sent("Reads that nobody has answered complete as flushed, unsignalled ones too, and so does what is behind them", c.aq, done...)
		w.settle()
		w.sent("once", c.aq, done...)
	},
	"nothing comes after the flush": func(w *world) {
		c := w.connected(0)
		near, far := w.memory(c.aq, spanned, verbs.LocalWrite, 1), w.memory(c.bq, spanned, remoteAll, 2)
		keep := bytes.Clone(near.Bytes)
		w.must(c.aq.read(1, verbs.Signaled, part(near, 0, spanned), far, 0))
		w.must(c.aq.read(2, verbs.Signaled, part(near, 0, spanned), far, 0))
		w.must(w.a.l.Turn()) // the Reads leave
		w.must(c.active.Disconnect())
		passive := next[*cmid.Disconnected](w.b, c.passive)
		if !w.iwarp {
			w.must(c.passive.Disconnect())
		}
		active := next[*cmid.Disconnected](w.a, c.active)
		if w.rig.Clock == nil { // a device may be quicker than the disconnect
			keep = bytes.Clone(near.Bytes)
		}
		w.settle()
		if passive.Err != nil || active.Err != nil {
			w.Errorf("told %v and %v: answers to Reads that were flushed are nobody's mistake", passive.Err, active.Err)
		}
		flushed := []verbs.WC{{ID: 1, Op: verbs.Read, Status: verbs.StatusFlushed}, {ID: 2, Op: verbs.Read, Status: verbs.StatusFlushed}}
		if w.rig.Clock == nil {
			for i := range min(succeeded(c.aq.of(verbs.Send)), 2) {
				flushed[i].Status, flushed[i].Bytes = verbs.StatusSuccess, spanned
				w.same("a Read that was answered in time", near.Bytes, far.Bytes)
			}
		}
		w.sent("who disconnects does not wait for Reads", c.aq, flushed...)
		w.same("a flushed Read's memory is its owner's again, whatever is still on its way", near.Bytes, keep)
	},
	"mixed": mixed,
}
