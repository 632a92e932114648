package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

// maxMessage is the largest message of either side.
const maxMessage = 1 << 20

// patience is how long a call waits for its answer.
const patience = 10 * time.Second

// The methods of the service. Requests and answers begin with a question.
var (
	echo  = rpc.NewRawMethod("soak.Echo")
	quick = rpc.NewRawMethod("soak.Quick") // answered on the loop
	again = rpc.NewRawMethod("soak.Again", rpc.MethodConfig{Idempotent: true})
	ask   = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("soak.Ask")
	items = rpc.NewStream[rpc.Bytes, rpc.Bytes]("soak.Items")
	// blocks its goroutine for a moment
	crowd = rpc.NewRawMethod("soak.Crowd")
	bulk  = rpc.NewRawMethod("soak.Bulk") // answered with the request itself
	audit = rpc.NewRawMethod("soak.Audit", rpc.MethodConfig{Idempotent: true})
)

// never is the number of earlier calls that a request reports as never executed.
const never = 4

// question is the head of a request. A body follows, which is generated from sum.
type question struct {
	Client, Worker, Seq uint64
	// numbers of this worker's calls that the server never got; 0: none
	Never [never]uint64
	// items of the answer and bytes of each; a call has one item
	Count, Size uint32
}

var questionSize = binary.Size(question{})

func (q *question) sum() uint64 { return mix(q.Client, q.Worker, q.Seq) }

// pack returns a request with a body of so many bytes.
func (q *question) pack(size int) []byte {
	b, err := binary.Append(make([]byte, 0, questionSize+size), binary.BigEndian, q)
	if err != nil {
		panic(err) // its type cannot be encoded
	}
	b = b[:questionSize+size]
	fill(b[questionSize:], q.sum())
	return b
}

// unpack reads a request, and checks its body.
func unpack(b []byte) (q question, err error) {
	if _, err := binary.Decode(b, binary.BigEndian, &q); err != nil {
		return q, fmt.Errorf("a request of %d bytes: %w", len(b), err)
	}
	if !intact(b[questionSize:], q.sum()) {
		return q, fmt.Errorf("request %d of worker %d of client %d: its body of %d bytes is not what was sent", q.Seq, q.Worker, q.Client, len(b)-questionSize)
	}
	return q, nil
}

// answer returns item i of the answer.
func (q *question) answer(i uint64) []byte { return fill(make([]byte, q.Size), mix(q.sum(), i)) }

// answered checks item i.
func (q *question) answered(i uint64, b []byte) error {
	if len(b) != int(q.Size) || !intact(b, mix(q.sum(), i)) {
		return wrong("answer %d of request %d of worker %d has %d bytes, want %d, or they are others", i, q.Seq, q.Worker, len(b), q.Size)
	}
	return nil
}

// fates is the content of soak.Audit: messages that are known to have arrived, or not.
type fates struct {
	Client, Part uint64
	Server       uint64 // number of the receiving server
	Came         bool   // all have arrived; otherwise none has
	N            uint32
	Tags         [256]uint64
}

func (f *fates) pack() []byte {
	b, err := binary.Append(nil, binary.BigEndian, f)
	if err != nil {
		panic(err) // its type cannot be encoded
	}
	return b
}

// note is the head of a message between reconnecting actor and server. A body follows.
type note struct {
	Tag        uint64
	Idempotent bool
}

var noteSize = binary.Size(note{})

func (n note) pack(of source, size int) []byte {
	b, err := binary.Append(make([]byte, 0, noteSize+size), binary.BigEndian, n)
	if err != nil {
		panic(err) // its type cannot be encoded
	}
	b = b[:noteSize+size]
	fill(b[noteSize:], mix(of.Client, of.Part, n.Tag))
	return b
}

func unpackNote(of source, b []byte) (n note, err error) {
	if _, err := binary.Decode(b, binary.BigEndian, &n); err != nil {
		return n, fmt.Errorf("a message of %d bytes: %w", len(b), err)
	}
	if !intact(b[noteSize:], mix(of.Client, of.Part, n.Tag)) {
		return n, fmt.Errorf("message %d of %v: its %d bytes are not what was sent", n.Tag, of, len(b)-noteSize)
	}
	return n, nil
}

// transfer is the head of a stream of rdmanet, in either direction. So many chunks follow.
type transfer struct {
	Client, Seq  uint64
	Chunks, Size uint32 // of the request; the answer has as many
	How          ending
}

// ending is how the client ends its stream.
type ending uint8

const (
	inOrder   ending = iota // it reads the server's FIN
	half                    // CloseWrite before it reads the answer
	abandoned               // it resets after half of the answer
	endless                 // one chunk there and back, until the connection breaks
)

var transferSize = binary.Size(transfer{})

func (h *transfer) chunk(buf []byte, back bool, i uint64) []byte {
	return fill(buf[:h.Size], h.sum(back, i))
}

func (h *transfer) sum(back bool, i uint64) uint64 {
	var direction uint64
	if back {
		direction = 1
	}
	return mix(h.Client, h.Seq, direction, i)
}

// source identifies the origin of numbers: a part of a client process, which is identified by its
// number.
type source struct{ Client, Part uint64 }
