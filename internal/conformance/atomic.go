package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/verbs"
)

// atomicAll is memory that peers may do everything to.
const atomicAll = sides.RemoteAll | verbs.RemoteAtomic

// canAtomics reports whether the device has atomic operations.
func (w *world) canAtomics() bool {
	w.Helper()
	c := w.Connected(0)
	w.WantErr("memory for atomics that may not be written here", sides.Err(c.BQ.PD.Alloc(8, verbs.RemoteAtomic)), unix.EINVAL)
	_, err := c.BQ.PD.Alloc(8, verbs.LocalWrite|verbs.RemoteAtomic)
	if !c.Active.Device().Attr().Atomics && !errors.Is(err, verbs.ErrNotSupported) {
		w.Errorf("memory for atomics that there are not: %v, want ErrNotSupported", err)
	}
	into := []verbs.SGE{sides.Part(c.AQ.MR, 0, verbs.AtomicLen)}
	return w.hasFeature(func(a verbs.DeviceAttr) bool { return a.Atomics },
		&verbs.SendWR{Op: verbs.AtomicCmpSwap, SGL: into}, &verbs.SendWR{Op: verbs.AtomicFetchAdd, SGL: into})
}

// wordAt returns integer i of a region.
func wordAt(mr *verbs.MR, i int) uint64 {
	return binary.NativeEndian.Uint64(mr.Bytes[i*verbs.AtomicLen:])
}

func setWord(mr *verbs.MR, i int, v uint64) {
	binary.NativeEndian.PutUint64(mr.Bytes[i*verbs.AtomicLen:], v)
}

// atomicScenarios test compare and swap, and fetch and add.
var atomicScenarios = func() scenarios {
	s := scenarios{
		"what was there comes, what is to be there is": atomicValues,
		"two connections add up":                       atomicRace,
		"in order with Writes, Reads and Sends":        atomicOrder,
		"they count as Reads":                          atomicDepth,
		"malformed":                                    atomicMalformed,
		"a misaligned address": func(w *world) {
			requireRefusal(w, verbs.AtomicFetchAdd, func(x *access) { x.wr.RemoteAddr, x.want = x.wr.RemoteAddr+4, verbs.StatusRemInvReq })
		},
	}
	aligned := maps.Clone(misuses)
	// They are misaligned as well, and the device may report either error.
	delete(aligned, "one byte before the start")
	delete(aligned, "one byte behind the end")
	for why, change := range aligned {
		s["fetch and add: "+why] = func(w *world) { requireRefusal(w, verbs.AtomicFetchAdd, change) }
		s["compare and swap: "+why] = func(w *world) { requireRefusal(w, verbs.AtomicCmpSwap, change) }
	}
	return s.where((*world).canAtomics)
}()

func atomicValues(w *world) {
	c := w.Connected(0)
	near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 64, verbs.LocalWrite|verbs.RemoteAtomic, 2)
	const start = 0x0102030405060708
	want := bytes.Clone(far.Bytes)
	setWord(far, 1, start)
	for i, x := range []struct {
		op              verbs.Opcode
		compareAdd, new uint64
		old, after      uint64
	}{
		{verbs.AtomicFetchAdd, 5, 0, start, start + 5},
		{verbs.AtomicFetchAdd, 0, 99, start + 5, start + 5},
		{verbs.AtomicCmpSwap, start, 1, start + 5, start + 5},
		{verbs.AtomicCmpSwap, start + 5, 1<<64 - 2, start + 5, 1<<64 - 2},
		{verbs.AtomicFetchAdd, 3, 0, 1<<64 - 2, 1},
		{verbs.AtomicFetchAdd, 1<<64 - 1, 0, 1, 0},
		{verbs.AtomicCmpSwap, 0, start, 0, start},
	} {
		w.Must(c.AQ.Post(&verbs.SendWR{
			ID: uint64(i), Op: x.op, Flags: verbs.Signaled, SGL: []verbs.SGE{sides.Part(near, 8, verbs.AtomicLen)},
			RemoteAddr: far.Addr + 8, RKey: far.RKey, CompareAdd: x.compareAdd, Swap: x.new,
		}))
		w.Sent("an atomic operation", c.AQ)
		if got := wordAt(near, 1); got != x.old {
			w.Errorf("operation %d, %v, has brought %#x, want %#x", i, x.op, got, x.old)
		}
		if got := wordAt(far, 1); got != x.after {
			w.Errorf("operation %d, %v, leaves %#x, want %#x", i, x.op, got, x.after)
		}
	}
	copy(want[8:], far.Bytes[8:16])
	w.Same("and nothing beside it", far.Bytes, want)
	if len(c.BQ.Done) > 0 {
		w.Errorf("the target has completions %+v: an atomic operation has no completion there", c.BQ.Done)
	}
}

// atomicRace checks that operations of two connections on the same integer happen one after the
// other.
func atomicRace(w *world) {
	c, d := w.Connected(0), w.Connected(0)
	far := w.Memory(c.BQ, 8, atomicAll, 0)
	setWord(far, 0, 0)
	const rounds = 20
	var seen []uint64
	for range rounds {
		var near []*verbs.MR
		for _, q := range []*sides.Queues{c.AQ, d.AQ} {
			q.Forget()
			near = append(near, w.Memory(q, sides.Depth*verbs.AtomicLen, verbs.LocalWrite, 1))
		}
		for i := range sides.Depth {
			w.Must(c.AQ.FetchAdd(i, verbs.Signaled, near[0], far, 1))
			w.Must(d.AQ.FetchAdd(i, verbs.Signaled, near[1], far, 1))
		}
		w.Until("all additions", func() bool { return len(c.AQ.Done) == sides.Depth && len(d.AQ.Done) == sides.Depth })
		for i := range sides.Depth {
			seen = append(seen, wordAt(near[0], i), wordAt(near[1], i))
		}
		w.Must(c.Active.Device().Free(near[0]))
		w.Must(d.Active.Device().Free(near[1]))
	}
	slices.Sort(seen)
	for i, v := range seen {
		if v != uint64(i) {
			w.Fatalf("an addition has found %d, and none %d: two have found the same, or one is lost", v, i)
		}
	}
	if got := wordAt(far, 0); got != 2*rounds*sides.Depth {
		w.Errorf("%d additions come to %d", 2*rounds*sides.Depth, got)
	}
}

// atomicOrder checks that an atomic operation sees the Writes before it, that operations behind it
// see its result, and that a fence waits for it.
func atomicOrder(w *world) {
	c := w.Connected(2)
	near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 8, atomicAll, 2)
	setWord(near, 7, 100)
	w.Must(c.AQ.Write(1, verbs.Signaled, sides.Part(near, 56, 8), far, 0))
	w.Must(c.AQ.FetchAdd(2, verbs.Signaled, near, far, 1))
	w.Must(c.AQ.Read(3, verbs.Signaled, sides.Part(near, 24, 8), far, 0))
	w.Barrier(c.AQ, c.BQ)
	if got := wordAt(far, 0); got != 101 {
		w.Errorf("when a Send behind it is received an addition to 100 has left %d", got)
	}
	w.Sent("in posting order", c.AQ)
	if wordAt(near, 2) != 100 || wordAt(near, 3) != 101 {
		w.Errorf("behind a Write of 100 an addition has found %d, and the Read behind it %d", wordAt(near, 2), wordAt(near, 3))
	}
	w.Must(c.AQ.FetchAdd(4, 0, near, far, 1))
	w.Must(c.AQ.Post(&verbs.SendWR{ID: 5, Flags: verbs.Fence, SGL: []verbs.SGE{sides.Part(near, 32, 8)}}))
	w.Until("the fenced Send", func() bool { return len(c.BQ.Of(verbs.Recv)) == 2 })
	if got := binary.NativeEndian.Uint64(c.BQ.Slot(1)); got != 101 {
		w.Errorf("a fenced Send has sent %d, not the 101 that the addition before it has brought", got)
	}
}

// atomicDepth checks that operations beyond the depth that the peer serves wait for those before
// them. A peer that serves none gets none.
func atomicDepth(w *world) {
	two := &cmid.ConnParam{ResponderResources: 2, InitiatorDepth: 2, RetryCount: 7, RNRRetryCount: 7}
	c := w.ConnectedWith(sides.Setup{Recvs: 1, Connect: two, Accept: two})
	near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 8, atomicAll, 2)
	setWord(far, 0, 0)
	for i := range sides.Depth - 1 {
		w.Must(c.AQ.FetchAdd(i, 0, near, far, 1))
	}
	w.Barrier(c.AQ, c.BQ)
	w.Sent("additions that nobody wants to hear of", c.AQ)
	for i := range sides.Depth - 1 {
		if got := wordAt(near, i); got != uint64(i) {
			w.Errorf("addition %d has found %d", i, got)
		}
	}
	none := w.ConnectedWith(sides.Setup{Connect: &cmid.ConnParam{ResponderResources: 4, RetryCount: 7, RNRRetryCount: 7}})
	w.WantErr("of one who has asked to ask nothing", none.AQ.FetchAdd(1, 0, near, far, 1), unix.EINVAL)
}

// atomicMalformed checks that a malformed operation is not posted.
func atomicMalformed(w *world) {
	c := w.ConnectedWith(sides.Setup{Recvs: 1, Active: func(_ verbs.Device, attr *verbs.QPInitAttr) { attr.MaxSGE = 2 }})
	near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 64, atomicAll, 2)
	closed := w.Memory(c.AQ, 8, 0, 1)
	keep := bytes.Clone(far.Bytes)
	for why, wr := range map[string]*verbs.SendWR{
		"into nothing":                   {},
		"into too little":                {SGL: []verbs.SGE{sides.Part(near, 0, 4)}},
		"into too much":                  {SGL: []verbs.SGE{sides.Part(near, 0, 16)}},
		"into two places":                {SGL: []verbs.SGE{sides.Part(near, 0, 4), sides.Part(near, 8, 4)}},
		"inline":                         {Inline: make([]byte, 8)},
		"into memory that is only read":  {SGL: []verbs.SGE{sides.Part(closed, 0, 8)}},
		"into memory that ends too soon": {SGL: []verbs.SGE{sides.Part(near, 60, 8)}},
	} {
		for _, op := range []verbs.Opcode{verbs.AtomicCmpSwap, verbs.AtomicFetchAdd} {
			wr.Op, wr.RemoteAddr, wr.RKey, wr.CompareAdd = op, far.Addr, far.RKey, 1
			w.WantErr(why, c.AQ.Post(wr), unix.EINVAL)
		}
	}
	w.Barrier(c.AQ, c.BQ)
	w.Same("what was not posted changes nothing", far.Bytes, keep)
}
