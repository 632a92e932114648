package main

import (
	"errors"
	"io"
	"net"
)

// readFIN reads the end of a stream, and nothing else.
func readFIN(c net.Conn, t *transfer, buf []byte) error {
	if n, err := c.Read(buf); n > 0 {
		return wrong("stream %d of client %d goes on for %d bytes behind its end", t.Seq, t.Client, n)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// readChunk reads a chunk and checks it.
func (h *host) readChunk(c net.Conn, t *transfer, buf []byte, back bool, i uint64) error {
	if err := h.readAll(c, buf[:t.Size]); err != nil {
		return err
	}
	if !intact(buf[:t.Size], t.sum(back, i)) {
		return wrong("stream %d of client %d: chunk %d of %d bytes, back %v, is not what was sent", t.Seq, t.Client, i, t.Size, back)
	}
	return nil
}

// readAll fills p. There is no deadline: the keepalive must detect that a peer is gone. A FIN here
// is an error: a killed process sends none.
func (h *host) readAll(c net.Conn, p []byte) (err error) {
	defer h.begin("pieces read", h.scale.bound())(nil)
	if _, err = io.ReadFull(c, p); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return wrong("a stream ends in order where it must not: %w", err)
	}
	return err
}
