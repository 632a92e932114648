package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/rdmactor/rdmactor/rdmanet"
)

// connect dials for a stream and sends its head.
func (c *customer) connect(h *transfer) (*rdmanet.Conn, error) {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	conn, err := rdmanet.Dial(ctx, c.rt, c.server.Streams)
	if err != nil {
		return nil, err
	}
	head, err := binary.Append(nil, binary.BigEndian, h)
	if err == nil {
		_, err = conn.Write(head)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn.(*rdmanet.Conn), nil
}

// transfer starts a worker that carries one byte stream after the other.
func (c *customer) transfer(work string) {
	c.every(150*time.Millisecond, work, streamPatience+grace, func(n uint64) error {
		h := transfer{Client: c.number, Seq: n, Chunks: rand.N(uint32(40)), Size: 1 + rand.N(uint32(20<<10)), How: ending(n) % endless}
		return c.carry(&h)
	})
}

func (c *customer) carry(h *transfer) (err error) {
	conn, err := c.connect(h)
	if err != nil {
		return err
	}
	over := context.AfterFunc(c.ctx, func() { reset(conn) })
	defer func() {
		over()
		if err != nil {
			reset(conn)
			return
		}
		_ = conn.Close()
	}()
	if err := conn.SetDeadline(time.Now().Add(streamPatience)); err != nil {
		return err
	}
	buf := make([]byte, h.Size)
	for i := range uint64(h.Chunks) {
		if _, err := conn.Write(h.chunk(buf, false, i)); err != nil {
			return err
		}
	}
	if h.How == half {
		if err := conn.CloseWrite(); err != nil {
			return err
		}
	}
	for i := range uint64(h.Chunks) {
		if err := c.readChunk(conn, h, buf, true, i); err != nil {
			return err
		}
		if h.How == abandoned && i >= uint64(h.Chunks)/2 {
			reset(conn)
			return nil
		}
	}
	return readFIN(conn, h, buf)
}

// reset ends a stream without a FIN.
func reset(c *rdmanet.Conn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// keepOn starts a worker that uses one byte stream until its connection breaks, and then the next.
// It has no deadline.
func (c *customer) keepOn(work string) {
	var (
		conn *rdmanet.Conn
		h    transfer
		i    uint64
	)
	next := func(n uint64) (err error) {
		if conn == nil {
			h, i = transfer{Client: c.number, Seq: n, Size: 16 << 10, How: endless}, 0
			if conn, err = c.connect(&h); err != nil {
				conn = nil
				return err
			}
		}
		this := conn
		over := context.AfterFunc(c.ctx, func() { reset(this) })
		defer over()
		buf := make([]byte, h.Size)
		if _, err = conn.Write(h.chunk(buf, false, i)); err == nil {
			err = c.readChunk(conn, &h, buf, true, i)
		}
		if i++; err != nil {
			reset(conn)
			conn = nil
		}
		return err
	}
	c.workers.Go(func() {
		c.work(20*time.Millisecond, work, c.scale.bound(), next)
		if conn != nil {
			reset(conn)
		}
	})
}
