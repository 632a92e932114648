package perf

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Op is the operation that a test repeats.
type Op string

// The operations.
const (
	Send  Op = "send"
	Write Op = "write"
	Read  Op = "read"
)

// Kind is the measured quantity.
type Kind string

// The kinds.
const (
	Latency   Kind = "latency"
	Bandwidth Kind = "bandwidth"
)

// The numbers on the wire are the indices.
var (
	ops   = [...]Op{1: Send, 2: Write, 3: Read}
	kinds = [...]Kind{1: Latency, 2: Bandwidth}
)

// Limits of a test.
const (
	MaxSize   = 1 << 28 // bytes of a message
	MaxDepth  = 4096    // messages in flight
	MaxMemory = 1 << 28 // bytes of all messages in flight
)

// Test is a client's request to a server.
type Test struct {
	Op    Op
	Kind  Kind
	Size  int // bytes of a message, at least 1
	Depth int // messages in flight; 1 for latency
}

// Check returns an error for a test that no server accepts.
func (t Test) Check() error {
	switch {
	case t.Op != Send && t.Op != Write && t.Op != Read:
		return fmt.Errorf("no operation %q: want send, write or read", string(t.Op))
	case t.Kind != Latency && t.Kind != Bandwidth:
		return fmt.Errorf("cannot measure %q: want latency or bandwidth", string(t.Kind))
	case t.Size < 1 || t.Size > MaxSize:
		return fmt.Errorf("size %d: want 1 to %d bytes", t.Size, MaxSize)
	case t.Depth < 1 || t.Depth > MaxDepth:
		return fmt.Errorf("depth %d: want 1 to %d messages on their way", t.Depth, MaxDepth)
	case t.Kind == Latency && t.Depth != 1:
		return fmt.Errorf("depth %d: latency is measured with one message on its way", t.Depth)
	case t.Size*t.Depth > MaxMemory:
		return fmt.Errorf("%d messages of %d bytes on their way: the most is %d bytes in all", t.Depth, t.Size, MaxMemory)
	}
	return nil
}

// batchSize returns how many messages of a bandwidth test share one answer. A Read needs no answer.
func (t Test) batchSize() int {
	if t.Op == Read {
		return 1
	}
	return max(1, t.Depth/4)
}

// place is memory that the peer may write or read.
type place struct {
	addr uint64
	rkey uint32
}

const (
	magic     = "rdmaperf"
	version   = 1
	placeLen  = 12
	answerLen = len(magic) + 4 + placeLen
	// requestLen is less than the 56 bytes of private data that InfiniBand allows in a request.
	requestLen = len(magic) + 4 + 8 + placeLen
)

func newHeader(a, b byte) []byte { return append([]byte(magic), version, a, b, 0) }

func (p place) append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, p.addr), p.rkey)
}

func decodePlace(b []byte) place {
	return place{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
}

// encodeRequest makes the client's private data. from is the memory to which the server may Write.
func encodeRequest(t Test, from place) []byte {
	b := newHeader(byte(slices.Index(ops[:], t.Op)), byte(slices.Index(kinds[:], t.Kind)))
	b = binary.BigEndian.AppendUint32(b, uint32(t.Depth))
	return from.append(binary.BigEndian.AppendUint32(b, uint32(t.Size)))
}

// decodeRequest decodes untrusted bytes, which InfiniBand may have padded.
func decodeRequest(b []byte) (t Test, from place, err error) {
	if err := checkHeader(b, requestLen); err != nil {
		return t, from, err
	}
	op, kind := int(b[9]), int(b[10])
	if op >= len(ops) || kind >= len(kinds) {
		return t, from, fmt.Errorf("no test %d of operation %d", kind, op)
	}
	b = b[len(magic)+4:]
	t = Test{Op: ops[op], Kind: kinds[kind], Depth: int(binary.BigEndian.Uint32(b)), Size: int(binary.BigEndian.Uint32(b[4:]))}
	return t, decodePlace(b[8:]), t.Check()
}

// encodeAnswer makes the server's private data. to is the memory that the client Writes to or Reads
// from.
func encodeAnswer(to place) []byte { return to.append(newHeader(0, 0)) }

func decodeAnswer(b []byte) (to place, err error) {
	if err := checkHeader(b, answerLen); err != nil {
		return to, err
	}
	return decodePlace(b[len(magic)+4:]), nil
}

// checkHeader checks that the peer is rdmactor perf of this version.
func checkHeader(b []byte, want int) error {
	if len(b) < want || string(b[:len(magic)]) != magic {
		return fmt.Errorf("the peer is no rdmactor perf: its private data is %.40x", b)
	}
	if b[len(magic)] != version {
		return fmt.Errorf("the peer speaks version %d, this is version %d", b[len(magic)], version)
	}
	return nil
}
