package core

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

func badWR(format string, args ...any) error {
	return fmt.Errorf("iwarp: work request: "+format+": %w", append(args, unix.EINVAL)...)
}

// checkSGE returns an error unless e lies inside its region, and that in pd or shared (nil: none).
func checkSGE(e *verbs.SGE, pd, shared verbs.PD) error {
	if e.MR == nil {
		if e.Length == 0 {
			return nil
		}
		return badWR("%d bytes without a memory region", e.Length)
	}
	if e.MR.PD != pd && (shared == nil || e.MR.PD != shared) {
		return badWR("a memory region that is freed or of another protection domain")
	}
	size := uint64(len(e.MR.Bytes))
	if uint64(e.Offset) > size || uint64(e.Length) > size-uint64(e.Offset) {
		return badWR("bytes %d+%d outside a region of %d", e.Offset, e.Length, size)
	}
	return nil
}

// CheckRecv returns EINVAL for a receive whose memory is not that of pd or shared (nil: none), or
// may not be written, or not large enough.
func CheckRecv(wr *verbs.RecvWR, pd, shared verbs.PD) error {
	if err := checkSGE(&wr.SGE, pd, shared); err != nil {
		return err
	}
	if wr.SGE.MR != nil && wr.SGE.MR.Access&verbs.LocalWrite == 0 {
		return badWR("receive into a region without local write")
	}
	return nil
}

// check returns the number of payload bytes of wr, which may use the memory of a.
func (q *sendQueue) check(wr *verbs.SendWR, a *access) (uint32, error) {
	switch {
	case wr.Op == verbs.SendWithImm || wr.Op == verbs.WriteWithImm || wr.Op.Atomic():
		return 0, fmt.Errorf("iwarp: %v: %w", wr.Op, verbs.ErrNotSupported)
	case wr.Op > verbs.Read:
		return 0, badWR("opcode %d", wr.Op)
	case len(wr.Inline) > MaxInline:
		return 0, badWR("%d inline bytes, more than %d", len(wr.Inline), MaxInline)
	case len(wr.Inline) > 0 && len(wr.SGL) > 0:
		return 0, badWR("inline bytes and a scatter/gather list")
	case len(wr.SGL) > MaxSGE:
		return 0, badWR("%d scatter/gather elements, more than %d", len(wr.SGL), MaxSGE)
	}
	total := uint64(len(wr.Inline))
	for i := range wr.SGL {
		if err := checkSGE(&wr.SGL[i], a.pd, a.regions.sharedPD()); err != nil {
			return 0, err
		}
		total += uint64(wr.SGL[i].Length)
	}
	if total > math.MaxUint32 {
		return 0, badWR("message of %d bytes", total)
	}
	if wr.Op == verbs.Read {
		if err := q.reads.check(wr); err != nil {
			return 0, err
		}
	}
	return uint32(total), nil
}

// check checks the requirements that only Reads have.
func (r *outboundReads) check(wr *verbs.SendWR) error {
	switch {
	case r.ord == 0:
		return badWR("Read on a connection whose peer serves none: see ConnParam.InitiatorDepth, and the peer's ResponderResources")
	case len(wr.Inline) > 0 || len(wr.SGL) > 1:
		return badWR("Read into %d scatter/gather elements and %d inline bytes, more than one element", len(wr.SGL), len(wr.Inline))
	case len(wr.SGL) == 1 && wr.SGL[0].MR != nil && wr.SGL[0].MR.Access&verbs.LocalWrite == 0:
		return badWR("Read into a region without local write")
	}
	return nil
}

// PostSend queues wr. ErrQPState: not connected, or over; EINVAL: malformed; ENOMEM:
// Config.SendWRs are outstanding.
func (c *Conn) PostSend(wr *verbs.SendWR) error {
	if c.state != stAccepted && c.state != stOpen {
		return fmt.Errorf("iwarp: send while %s: %w", c.state, verbs.ErrQPState)
	}
	q := &c.stream.sends
	total, err := q.check(wr, &c.stream.access)
	if err != nil {
		return err
	}
	return q.post(wr, total)
}

// PostRecv queues wr; legal from Init on. EINVAL: over, malformed, or there is an SRQ; ENOMEM:
// Config.RecvWRs are outstanding.
func (c *Conn) PostRecv(wr verbs.RecvWR) error {
	if c.state == stEnded {
		return badWR("receive while %s", c.state)
	}
	return c.stream.receives.post(&wr, &c.stream.access)
}
