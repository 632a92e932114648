package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode"

	"github.com/rdmactor/rdmactor/verbs"
)

// buffer is the content of every message in rping's protocol. A client's message has the address of
// the client's data, or of the memory for the server's data. A server's message has the same size,
// but its content has no meaning.
type buffer struct {
	addr uint64
	rkey uint32
	size uint32
}

const bufferSize = 16

func bufferOf(mr *verbs.MR) buffer {
	return buffer{addr: mr.Addr, rkey: mr.RKey, size: uint32(len(mr.Bytes))}
}

func (b buffer) encode() []byte {
	m := make([]byte, 0, bufferSize)
	m = binary.BigEndian.AppendUint64(m, b.addr)
	m = binary.BigEndian.AppendUint32(m, b.rkey)
	return binary.BigEndian.AppendUint32(m, b.size)
}

func decodeBuffer(m []byte) (buffer, error) {
	if len(m) != bufferSize {
		return buffer{}, fmt.Errorf("a message of %d bytes: this is not ping, whose messages have %d", len(m), bufferSize)
	}
	return buffer{
		addr: binary.BigEndian.Uint64(m),
		rkey: binary.BigEndian.Uint32(m[8:]),
		size: binary.BigEndian.Uint32(m[12:]),
	}, nil
}

// fillRound puts a round's text into b as rping does: a prefix, then the letters from 'A' to 'z' in
// a cycle, then a zero. Each round starts with the next letter.
func fillRound(b []byte, round int) {
	const first, letters = 'A', 'z' - 'A' + 1
	n := copy(b, fmt.Sprintf("rdma-ping-%d: ", round))
	for i := range b[n:] {
		b[n+i] = first + byte((round+i)%letters)
	}
	b[len(b)-1] = 0
}

// printedText returns the part of b that rping prints: the bytes before the first zero.
func printedText(b []byte) []byte {
	s, _, _ := bytes.Cut(b, []byte{0})
	return bytes.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // the peer's bytes must not control the terminal
			return '.'
		}
		return r
	}, s)
}
