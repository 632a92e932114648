package core

import (
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// headLen is the number of an FPDU's bytes that determine the length of its header.
const headLen = wire.LengthLen + wire.CtrlLen

// rxPhase is the part of an FPDU that comes next.
type rxPhase uint8

const (
	phHead    rxPhase = iota // length and headers
	phPayload                // payload, to rx.dst or nowhere
	phTrailer                // pad and CRC
)

// rx is the receiving side: one FPDU at a time, in one message at a time.
type rx struct {
	// length, headers, Read Request or Terminate payload
	hdr     [wire.LengthLen + wire.UntaggedLen + wire.MaxTerminateLen]byte
	trail   [3 + wire.CRCLen]byte
	have    uint8 // bytes in hdr
	need    uint8 // bytes wanted there
	tail    uint8 // bytes in trail
	phase   rxPhase
	taken   bool // recv is in use: a Send is in progress
	rtrOut  bool // the answer to our ready-to-receive Read is outstanding
	bulk    bool // a segment of the last message was large
	wait    waiting
	op      wire.Opcode
	orphans int32 // Read Responses under way whose Reads were flushed

	h     wire.Header
	ulpdu int    // the FPDU's length field
	left  int    // bytes of the ULPDU still to come
	dst   []byte // where they go; shorter than left: nowhere
	mr    *verbs.MR
	crc   uint32
	owned uint32 // bytes of rest's memory that Keep has allocated; 0: rest is the caller's
	bad   *fault // the segment's error, reported when its CRC proves right

	recv    verbs.RecvWR
	off     uint32 // bytes of the message so far: the next MO
	msn     uint32 // of the Send that is next or in progress
	readMSN uint32 // of the next Read Request
	seg     uint32 // payload bytes of the segment
	tag     tagged
	heardAt time.Time // when bytes last came, if a message is half here
	rest    []byte    // bytes read behind the message that waits
}

// tagged is the Write or Read Response in progress, between two of its segments.
type tagged struct {
	op   wire.Opcode
	busy bool
	stag uint32
	next uint64 // TO
}

// If a message finds a shared receive queue empty whose owner can be asked for a receive
// (RecvSource.WaitsIfEmpty), it waits, and Input returns. Its header has been read. Resume goes on
// when the owner of the Conn has asked. The owner of the queue may have no memory now, which is not
// the peer's fault. So nothing more is read from the socket until Resume finds a receive, and TCP
// stops the peer. Time-outs for silence and set-up do not run until then, because it is this side
// that does not read.
//
// Pause makes the next message wait although there are receives, because the owner reserves them
// for other connections.
type waiting struct {
	message bool // one waits
	paused  bool // the owner wants the next one to
	deaf    bool // this side sends nothing more, and nothing that comes would be processed
}

// orphanReads records that the Reads of the next n Read Responses were flushed: their memory
// belongs to the owner again.
func (r *rx) orphanReads(n int) {
	r.orphans += int32(n)
	if r.h.Opcode == wire.OpReadResponse {
		r.dst = nil
	}
}

// inMessage reports whether the input is in the middle of a message.
func (r *rx) inMessage() bool { return r.have > 0 || r.taken || r.tag.busy }

// goOn counts a tagged segment.
func (r *rx) goOn() {
	h := &r.h
	r.tag = tagged{op: h.Opcode, stag: h.STag, next: h.TO + uint64(r.seg), busy: !h.Last}
}
