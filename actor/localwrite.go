package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
)

// Write begins w on the connection h, as if w were sent to the identifier, but without a mailbox,
// an answer or an allocation: done is called in place of the answer, on the loop, when the device
// is finished with the memory, perhaps within this call. Its error is the answer's. done must not
// block, and must not call any method for this connection. If Write returns an error, nothing was
// begun: the error is that of AccessError, or ENOTCONN when h is not on the actor's loop.
//
// It is called in the Receive of h's owner, but not while the owner receives an event of this very
// connection.
func (l Local) Write(h Handle, w *Write, done func(error)) error {
	it := l.identOf(h)
	switch {
	case it == nil:
		return datapath.ErrNotConnected
	case w.access.busy:
		return fmt.Errorf("rdma: sent before, and not answered yet: %w", unix.EINVAL)
	}
	w.access.done = done
	err := it.tenancy.startOperation(w, nil)
	if err != nil {
		w.access.done = nil
	}
	return err
}

// Immediates reports whether Writes on the connection h may have an immediate (Write.HasImm).
func (l Local) Immediates(h Handle) bool {
	it := l.identOf(h)
	return it != nil && it.conn != nil && it.conn.Attr().Immediate && !it.lined
}

// identOf returns the identifier h; nil: it is not on the actor's loop.
func (l Local) identOf(h Handle) *ident {
	if l.l == nil {
		return nil
	}
	id := l.l.ch.ID(h)
	if id == nil {
		return nil
	}
	it, _ := id.Context.(*ident)
	return it
}
