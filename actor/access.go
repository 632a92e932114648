package actor

import (
	"encoding/binary"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// startOperation starts an operation. If it returns an error, the operation was not started.
func (tn *tenancy) startOperation(cmd oneSided, sender *actor.PID) error {
	a, s := cmd.accessAndSpan()
	c := tn.conn
	switch {
	case a.busy:
		return fmt.Errorf("sent before, and not answered yet: %w", unix.EINVAL)
	case c == nil:
		return datapath.ErrNotConnected
	case c.Closing():
		return c.NotSending()
	case c.WaitingOps() >= tn.l.rt.cfg.Limits.SendQueue:
		return fmt.Errorf("%d operations wait for room in the send queue: %w (%w)", c.WaitingOps(), ErrQueueFull, unix.ENOBUFS)
	}
	if err := tn.checkSpan(s); err != nil {
		return err
	}
	a.posted = datapath.OneSided{Op: s.op, Fence: s.fence, Imm: s.imm, AtomicOperands: s.AtomicOperands, Issuer: a}
	if s.n > 0 {
		a.posted.Near = verbs.SGE{MR: s.memory.mr, Offset: uint32(s.at), Length: uint32(s.n)}
		a.posted.Addr, a.posted.RKey = s.key.Addr+uint64(s.offset), s.key.RKey
		a.memory = s.memory
	}
	if a.memory != nil {
		if !a.memory.lease.Reach() {
			a.memory = nil
			return errUsed
		}
		a.memory.busy++
	}
	a.from, a.cmd, a.sender, a.busy, a.answered = tn.outbox, cmd, sender, true, false
	err := c.OneSided(&a.posted)
	if err != nil {
		a.releaseMemory()
	}
	return err
}

// checkSpan returns an error if an operation is detectably wrong on this side.
func (tn *tenancy) checkSpan(s span) error {
	right := RemoteRead
	if s.op.Writes() {
		right = RemoteWrite
	}
	if s.op.Atomic() {
		if err := tn.checkAtomic(s); err != nil {
			return err
		}
		right = RemoteAtomic
	}
	switch {
	case tn.cfg.checkRights(right) != nil:
		return ErrSecured
	case s.op == verbs.WriteWithImm:
		if err := tn.checkImmediate(s); err != nil {
			return err
		}
	}
	switch {
	case s.n < 0 || s.offset < 0 || s.at < 0:
		return fmt.Errorf("a negative length or offset: %w", unix.EINVAL)
	case s.n == 0:
		return nil
	}
	if err := tn.checkOwned(s.memory); err != nil {
		return err
	}
	limit, remote := s.memory.n, int64(s.key.Length)
	switch {
	case s.at > limit || s.n > limit-s.at:
		return fmt.Errorf("bytes %d+%d of memory of %d: %w", s.at, s.n, limit, unix.EINVAL)
	case int64(s.offset) > remote || int64(s.n) > remote-int64(s.offset):
		return fmt.Errorf("bytes %d+%d of %v: %w", s.offset, s.n, s.key, unix.EINVAL)
	case s.key.Rights&right == 0:
		return fmt.Errorf("%v was not granted for a %v: %w", s.key, s.op, unix.EACCES)
	case uint64(s.n) > uint64(tn.conn.Attr().MaxMessage):
		return fmt.Errorf("%d bytes, and %s moves %d at a time: %w (%w)", s.n, tn.id.Device().Name(), tn.conn.Attr().MaxMessage,
			ErrTooLarge, unix.EMSGSIZE)
	}
	return nil
}

// Ended implements datapath.OpIssuer.
func (a *access) Ended(_ *datapath.Conn, o *datapath.OneSided, err error) {
	if err == nil && o.Op.Atomic() {
		a.found = binary.NativeEndian.Uint64(o.Near.MR.Bytes[o.Near.Offset:])
	}
	a.releaseMemory() // from here on, other goroutines may use the memory
	a.sendAnswer(err)
}

// Abandoned implements datapath.OpIssuer.
func (a *access) Abandoned(*datapath.Conn, *datapath.OneSided) { a.sendAnswer(datapath.Flushed()) }

// releaseMemory returns the command and the memory to the owner.
func (a *access) releaseMemory() {
	a.busy = false
	if a.memory != nil {
		a.memory.busy--
		a.memory.lease.Unreach()
		a.memory = nil
	}
}

// sendAnswer sends the answer, once.
func (a *access) sendAnswer(err error) {
	if a.answered {
		return
	}
	a.answered = true
	if done := a.done; done != nil {
		a.done = nil
		done(err)
		return
	}
	if err != nil {
		a.from.answerSender(a.sender, a.from.accessError(a.cmd, err))
		return
	}
	a.from.answerSender(a.sender, a.cmd.doneEvent(a.from.eventBase()))
}

// checkImmediate makes the checks that only a Write with an immediate needs. The peer would end the
// connection because of an immediate that it does not accept or has not allowed.
func (tn *tenancy) checkImmediate(s span) error {
	switch {
	case !tn.conn.Attr().Immediate:
		return fmt.Errorf("%s has no immediates: %w", tn.id.Device().Name(), cmid.ErrNotSupported)
	case tn.lined:
		return fmt.Errorf("an immediate beside an actor that counts the messages (Line): %w", unix.EINVAL)
	case s.key.Rights&RemoteWrite == 0:
		return fmt.Errorf("%v was not granted for a %v: %w", s.key, s.op, unix.EACCES)
	}
	return nil
}

// checkAtomic makes the checks that only atomic operations need. A misaligned one would end the
// connection.
func (tn *tenancy) checkAtomic(s span) error {
	if err := tn.checkAtomicsSupport(); err != nil {
		return err
	}
	if addr := s.key.Addr + uint64(s.offset); addr%verbs.AtomicLen != 0 {
		return fmt.Errorf("an atomic operation at %d, not a multiple of %d: %w", s.offset, verbs.AtomicLen, unix.EINVAL)
	}
	return nil
}
