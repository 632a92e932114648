package rpc

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// inbound has the items of a stream that this side receives: those that have arrived and were not
// read. The loop puts them in, and one goroutine at a time takes them out. Both sides use it.
type inbound struct {
	rt     *rdma.Runtime
	m      *method
	codec  *codec // of the items
	from   feeder
	window int64
	most   int           // largest item that this side takes
	ready  chan struct{} // has a token after a change

	read  []byte // taken from in; belongs to the reader, like at and taken
	at    int
	taken int64 // bytes read and not granted again

	mu     sync.Mutex
	in     []byte     // items, each preceded by its length or largeItem
	large  []*landing // large items of in and read
	parts  parts      // of the item that is arriving
	credit int64      // bytes that the peer may still send
	waits  bool       // the reader waits for an item
	woke   bool       // the last item has come for a reader that waits: the loop wakes it; out.mu
	excess int        // bytes beyond the window when the last item or part came; out.mu
	err    error      // final error
}

// feeder is the stream that an inbound belongs to.
type feeder interface {
	// grantBytes lets the peer send n more bytes.
	grantBytes(n uint32)
	// waitEnd returns a channel that closes when the reader must stop waiting; nil: the end wakes
	// it.
	waitEnd() <-chan struct{}
	// itemsDrained is called when the reader gets the final error: it has read all items.
	itemsDrained()
	// endCause returns why the stream is over, if it has ended without an end of its items.
	endCause() error
	// closeStream closes the stream before its end. nil: it was asked for.
	closeStream(why error)
	// headerMeta and trailerMeta return the metadata of the answer so far.
	headerMeta() Pairs
	trailerMeta() Pairs
}

// init prepares an inbound of a stream of m, whose items c decodes.
func (r *inbound) init(rt *rdma.Runtime, m *method, c *codec, window, most int, from feeder) {
	r.rt, r.m, r.codec, r.from = rt, m, c, from
	r.window, r.credit, r.most = int64(window), int64(window), most
	r.ready = make(chan struct{}, 1)
}

// itemLocked takes an item, which lies in m, and returns its size. last: it ends one that came in
// parts. It is called on the loop, with out.mu locked.
func (r *inbound) itemLocked(m *rdma.Received, id wire.CallID, body []byte, last bool) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.credit <= 0 {
		return 0, violationError("an item of call %#x that its window has no room for", id)
	}
	n = len(body)
	if r.err != nil { // for its receiver the stream has ended
		r.credit -= wire.HeaderLen + int64(n)
		return n, nil
	}
	switch {
	case last:
		if err := r.parts.add(id, body, r.most-wire.HeaderLen); err != nil {
			return 0, err
		}
		if n = r.parts.n; n > gatherBytes {
			r.largeLocked(&landing{parts: r.parts.take()})
			break
		}
		// no peer needs parts for a small one, which would occupy much more memory in them
		r.in = binary.BigEndian.AppendUint32(r.in, uint32(n))
		for _, b := range r.parts.all {
			r.in = append(r.in, b.b...)
		}
		r.parts.releaseAll()
	case r.parts.n > 0:
		return 0, violationError("an item of call %#x within another one", id)
	case n > copyOnLoop:
		r.largeLocked(landItem(r.rt.Scheduler(), m, body))
	default:
		r.in = binary.BigEndian.AppendUint32(r.in, uint32(n))
		r.in = append(r.in, body...)
	}
	r.credit -= wire.HeaderLen + int64(n)
	r.excess = r.excessLocked()
	r.woke, r.waits = r.waits, false
	return n, nil
}

// excessLocked returns the number of bytes that this side keeps beyond the window, because an item
// is larger than the rest of it.
func (r *inbound) excessLocked() int { return int(max(int64(r.parts.n)-r.credit, 0)) }

// measureExcess sets excess after items were read.
func (r *inbound) measureExcess() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.excess = r.excessLocked()
}

// partLocked takes a part of an item, like itemLocked.
func (r *inbound) partLocked(id wire.CallID, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.credit <= 0 {
		return violationError("a part of an item of call %#x that its window has no room for", id)
	}
	if r.err != nil { // the receiver gets no further items
		return nil
	}
	if err := r.parts.add(id, body, r.most-wire.HeaderLen); err != nil {
		return err
	}
	r.excess = r.excessLocked()
	return nil
}

// beyondWindow returns how many bytes beyond the window the items that have arrived have.
func (r *inbound) beyondWindow() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(-r.credit, 0)
}

// arriving returns how many bytes of the next item have arrived in parts.
func (r *inbound) arriving() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parts.n
}

func (r *inbound) largeLocked(l *landing) {
	r.in = binary.BigEndian.AppendUint32(r.in, largeItem)
	r.large = append(r.large, l)
}

func (r *inbound) wakeReader() { wake(r.ready) }

// closeItems records the end of the items. Not first: it was recorded before.
func (r *inbound) closeItems(err error) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first = r.err == nil; first {
		r.err = err
	}
	r.parts.releaseAll()
	r.wakeReader()
	return first
}

// dropItems ends the items with err, and forgets those that were not read.
func (r *inbound) dropItems(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in, r.large, r.err = nil, nil, err
	r.parts.releaseAll()
	r.wakeReader()
}

// finalError returns the final error. nil: the items have not ended.
func (r *inbound) finalError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// failStream ends the stream immediately: items that have arrived are dropped. It is called on the
// reader's goroutine.
func (r *inbound) failStream(err error) {
	r.from.closeStream(err)
	r.dropItems(err)
	r.read, r.at = nil, 0
}

// receiveItem decodes the next item into item.
func (r *inbound) receiveItem(item any) error {
	b, err := r.nextItem()
	if err != nil {
		return err
	}
	fail := func(why error) {
		err = badMessage(r.m, "item", why, FateAnswered)
		r.failStream(err)
	}
	tryCall(func() {
		if why := r.codec.decode(b, item); why != nil {
			fail(why)
		}
	}, func(why *PanicError) { fail(why) })
	return err
}

// nextItem returns the next item's bytes, which are good until the next call.
func (r *inbound) nextItem() ([]byte, error) {
	for r.at == len(r.read) {
		if err := r.refillItems(); err != nil {
			return nil, err
		}
	}
	n := binary.BigEndian.Uint32(r.read[r.at:])
	r.at += 4
	var item []byte
	if n == largeItem {
		var err error
		if item, err = r.takeLanded(); err != nil {
			r.read, r.at = nil, 0
			return nil, err
		}
	} else {
		item = r.read[r.at : r.at+int(n) : r.at+int(n)]
		r.at += int(n)
	}
	r.countRead(wire.HeaderLen + int64(len(item)))
	return item, nil
}

// refillItems takes the items that have arrived, or waits for a change.
func (r *inbound) refillItems() error {
	if err := r.from.endCause(); err != nil {
		return err
	}
	r.mu.Lock()
	if err := r.err; len(r.in) == 0 && err != nil {
		r.mu.Unlock()
		r.from.itemsDrained()
		return err
	}
	spare := r.read[:0]
	if cap(spare) > 2*keepBuffer {
		spare = nil
	}
	r.read, r.in, r.at = r.in, spare, 0
	r.waits = len(r.read) == 0
	r.mu.Unlock()
	if len(r.read) > 0 {
		return nil
	}
	return r.awaitChange()
}

// awaitChange waits until something has changed.
func (r *inbound) awaitChange() error {
	select {
	case <-r.ready:
		r.rt.Scheduler().Resume()
	case <-r.from.waitEnd():
		r.rt.Scheduler().Resume()
	case <-r.rt.Stalled():
		r.rt.Scheduler().Resume()
		if err := onLoop(r.m, FateUnknown); err != nil {
			return err
		}
	}
	return nil
}

// awaitEnd waits for the end of the stream. nil: it has ended in order.
func (r *inbound) awaitEnd() error {
	for {
		if err := r.finalError(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := r.awaitChange(); err != nil {
			return err
		}
	}
}

// countRead counts n bytes that were read, and opens the window after half of it. As soon as half a
// window was, it lets the peer send as much more.
func (r *inbound) countRead(n int64) {
	if r.taken += n; r.taken < r.window/2 {
		return
	}
	n, r.taken = r.taken, 0
	r.mu.Lock()
	ended := r.err != nil
	if !ended {
		r.credit += n
	}
	r.mu.Unlock()
	if !ended {
		r.from.grantBytes(uint32(n))
	}
}

// takeLanded returns the large item that is next, when it is complete. If the loop has dropped it,
// the items have ended, and takeLanded returns their final error.
func (r *inbound) takeLanded() ([]byte, error) {
	r.mu.Lock()
	if len(r.large) == 0 {
		defer r.mu.Unlock()
		return nil, r.err
	}
	l := r.large[0]
	r.large[0] = nil
	r.large = r.large[1:]
	r.mu.Unlock()
	if l.here == nil {
		return l.parts.join(nil), nil
	}
	<-l.here
	r.rt.Scheduler().Resume()
	return l.item, nil
}
