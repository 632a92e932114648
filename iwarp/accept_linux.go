package iwarp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// accept is rdma_accept(3). When it fails the peer is rejected: the kernel does the same, and the state machine knows it.
func (id *ident) accept(private []byte, p *cmid.ConnParam) error {
	if !id.child || id.answered {
		return unix.EINVAL
	}
	id.answered = true
	c, now := id.conn, time.Now()
	err := c.accept(now, private, p)
	if err != nil {
		_ = c.core.Reject(now, nil) // ECONNRESET: nobody is there to be told
	}
	c.settle(now)
	return err
}

func (c *conn) accept(now time.Time, private []byte, p *cmid.ConnParam) error {
	if c.qp == nil {
		return fmt.Errorf("iwarp: accept needs a queue pair: %w", unix.EINVAL)
	}
	ird, ord, err := depths(p, c.asked)
	if err != nil {
		return err
	}
	return c.core.Accept(now, private, ird, ord)
}

// reject is rdma_reject(3). The reason does not travel on iWARP.
func (id *ident) reject(private []byte) error {
	if !id.child || id.answered {
		return unix.EINVAL
	}
	now := time.Now()
	if err := id.conn.core.Reject(now, private); err != nil {
		return err
	}
	id.answered = true
	id.conn.settle(now)
	return nil
}

// disconnect is rdma_disconnect(3). Disconnected comes with the peer's FIN, so that what it sent before is received.
func (id *ident) disconnect() error {
	c := id.conn
	switch {
	case c == nil || !c.established:
		return unix.EINVAL
	case c.over:
		return nil
	}
	now := time.Now()
	c.output(now) // what was posted before
	c.core.Disconnect(now)
	c.settle(now)
	return nil
}
