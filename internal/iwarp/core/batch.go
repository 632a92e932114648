package core

import (
	"bytes"
	"slices"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

const (
	arenaLen = 8192 // header, trailer and small payload bytes of a batch
	batchIOV = 256  // slices of a batch
	// payloads up to this are copied into the arena: cheaper than a separate slice
	copyMax = 128
	// overhead bounds an FPDU's arena bytes besides copied payload: a Read Request's headers, pad,
	// CRC.
	overhead = wire.LengthLen + wire.UntaggedLen + wire.ReadRequestLen + 3 + wire.CRCLen
	poolMax  = 64
)

// batch is a run of FPDUs on their way to the socket. Headers, trailers and small payloads are in
// the arena, in stream order, so that adjacent bytes go out as one slice.
type batch struct {
	pool  *Pool
	arena []byte   // capacity fixed: iov refers to it
	iov   [][]byte // capacity fixed
	first int      // iov[first:] is not yet taken by the socket
	ends  []uint64 // stream offset where the batch begins, and behind each FPDU
	last  []bool   // of ends: a message ends there
	fixed bool     // frozen
	mark  int      // arena[mark:] belongs to the FPDU being made and is not in iov
}

// Pool lends output memory to the Conns of one goroutine. The zero value is ready to use. It keeps
// as many batches as were in use at the same time, up to 64, of about 16 KiB each.
type Pool struct{ free []*batch }

// get lends a batch that begins at stream offset off, between two messages or in one. p may be nil.
func (p *Pool) get(off uint64, between bool) *batch {
	var b *batch
	if p != nil && len(p.free) > 0 {
		b = p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
	} else {
		b = &batch{
			pool: p, arena: make([]byte, 0, arenaLen), iov: make([][]byte, 0, batchIOV),
			ends: make([]uint64, 0, batchIOV), last: make([]bool, 0, batchIOV),
		}
	}
	b.endFPDU(off, between)
	return b
}

// release returns b to its pool. b may be nil.
func (b *batch) release() {
	if b == nil || b.pool == nil || len(b.pool.free) >= poolMax {
		return
	}
	clear(b.iov) // the payloads are their owners' again
	b.arena, b.iov, b.first, b.ends, b.last, b.fixed, b.mark = b.arena[:0], b.iov[:0], 0, b.ends[:0], b.last[:0], false, 0
	b.pool.free = append(b.pool.free, b)
}

// hasRoom reports whether another FPDU fits: size bytes of payload in so many pieces.
func (b *batch) hasRoom(size, pieces int) bool {
	need := overhead
	if size <= copyMax {
		need += size
	}
	return cap(b.arena)-len(b.arena) >= need && cap(b.iov)-len(b.iov) >= pieces+2 && cap(b.ends) > len(b.ends)
}

// endFPDU records that an FPDU ends at stream offset off, and whether it was its message's last.
func (b *batch) endFPDU(off uint64, last bool) {
	b.ends, b.last = append(b.ends, off), append(b.last, last)
}

// beginFPDU begins an FPDU.
func (b *batch) beginFPDU() { b.mark = len(b.arena) }

// flushArena adds the arena bytes since the mark (at least one) to the output. If they continue the
// previous slice, it is extended.
func (b *batch) flushArena() {
	n := len(b.arena) - b.mark
	if k := len(b.iov); k > b.first && b.mark > 0 {
		last := b.iov[k-1]
		if end := &b.arena[b.mark-1]; len(last) > 0 && &last[len(last)-1] == end {
			b.iov[k-1] = last[:len(last)+n]
			b.mark = len(b.arena)
			return
		}
	}
	b.iov = append(b.iov, b.arena[b.mark:len(b.arena)])
	b.mark = len(b.arena)
}

// addPayload adds p, copied or referenced. It returns the CRC of the FPDU so far, without the bytes
// that are still in arena[mark:].
func (b *batch) addPayload(p *payload, copied, crc bool) uint32 {
	var sum uint32
	if copied {
		for s := p.next(); s != nil; s = p.next() {
			b.arena = append(b.arena, s...)
		}
		return sum
	}
	if crc {
		sum = wire.UpdateCRC(sum, b.arena[b.mark:])
	}
	b.flushArena()
	for s := p.next(); s != nil; s = p.next() {
		if crc {
			sum = wire.UpdateCRC(sum, s)
		}
		b.iov = append(b.iov, s)
	}
	return sum
}

// pendingSlices returns the slices that the socket has not yet taken.
func (b *batch) pendingSlices() [][]byte { return b.iov[b.first:] }

// advance removes up to n bytes from the front and returns how many there were.
func (b *batch) advance(n int) uint64 {
	done := 0
	for n > 0 && b.first < len(b.iov) {
		p := b.iov[b.first]
		if n < len(p) {
			b.iov[b.first] = p[n:]
			return uint64(done + n)
		}
		n -= len(p)
		done += len(p)
		b.iov[b.first] = nil
		b.first++
	}
	return uint64(done)
}

// nextBoundary returns the first end of an FPDU at or behind stream offset off, which lies in the
// batch.
func (b *batch) nextBoundary(off uint64) uint64 {
	i, _ := slices.BinarySearch(b.ends, off)
	return b.ends[i]
}

// messageEnd returns the first end of a message at or behind stream offset off, or the batch's end
// when that is in the middle of one.
func (b *batch) messageEnd(off uint64) uint64 {
	i, _ := slices.BinarySearch(b.ends, off)
	for i < len(b.ends)-1 && !b.last[i] {
		i++
	}
	return b.ends[i]
}

// freezePending copies the bytes that the socket has not taken, so that they can no longer change.
func (b *batch) freezePending() {
	if b.fixed {
		return
	}
	b.fixed = true
	rest := bytes.Join(b.pendingSlices(), nil)
	clear(b.iov)
	b.iov, b.first = append(b.iov[:0], rest), 0
}

// copyHead returns a copy of the first n bytes that the socket has not taken.
func (b *batch) copyHead(n uint64) []byte {
	out := make([]byte, 0, n)
	for _, p := range b.pendingSlices() {
		out = append(out, p[:min(uint64(len(p)), n-uint64(len(out)))]...)
	}
	return out
}

// truncate drops the bytes behind stream offset cut; n bytes before it are not yet taken.
func (b *batch) truncate(cut, n uint64) {
	for i := b.first; i < len(b.iov); i++ {
		k := min(uint64(len(b.iov[i])), n)
		b.iov[i] = b.iov[i][:k]
		if n -= k; n == 0 {
			clear(b.iov[i+1:])
			b.iov = b.iov[:i+1]
			break
		}
	}
	i, _ := slices.BinarySearch(b.ends, cut)
	b.ends, b.last = b.ends[:i+1], b.last[:i+1]
}
