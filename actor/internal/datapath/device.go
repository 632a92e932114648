package datapath

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/verbs"
)

// recvBit is set in the ID of a receive, and not in that of a send. The pool's number and the
// buffer's index are below it. A send's is its number in its connection's flight.
const recvBit = 1 << 63

// deviceOf finds or makes the Device of the loop's connections over dev.
func (l *Loop) deviceOf(dev verbs.Device) *Device {
	for _, d := range l.Devices {
		if d.Verbs == dev {
			return d
		}
	}
	for _, d := range slices.Clone(l.Devices) {
		if d.Verbs.Name() == dev.Name() { // it was pulled out, and plugged in again
			d.markRemoved()
		}
	}
	d := &Device{l: l, Verbs: dev, attr: dev.Attr(), Domains: make(map[*domain]uint64)}
	if r, ok := dev.(verbs.Reporter); ok {
		r.OnDeviceEvent(d.logEvent)
	}
	d.Shared = newDomain(d, dev.PD(), false)
	l.Devices = append(l.Devices, d)
	return d
}

// queuePump queues c to be pumped after the fetched completions, which make room together.
func (d *Device) queuePump(c *Conn) {
	if !c.Out.queue.due {
		c.Out.queue.due = true
		d.due = append(d.due, c)
	}
}

// qpConn returns the connection that a queue pair was made for.
func qpConn(qp verbs.QP) (c *Conn, ok bool) {
	if qp == nil {
		return nil, false
	}
	c, ok = qp.Context().(*Conn)
	return c, ok
}

// postMessage posts a message. b begins with its header, if the mode has one. A small message is
// copied by the device (inline). A larger one is sent from where it is if the device can do that,
// and is copied into device memory otherwise. A quiet one completes together with the next that is
// not.
func (d *Device) postMessage(c *Conn, s *Outgoing, b []byte, quiet bool) error {
	if c.Sec != nil {
		return c.Sec.sealAndPost(s, b, quiet)
	}
	op := Posting{Send: s}
	d.prepareSend(quiet)
	switch pd, ok := c.res.dom.pd.(verbs.Registrar); {
	case len(b) <= d.attr.MaxInline:
		d.wr.Inline = b
	case ok:
		s.mr = pd.Local(b)
		d.sgl[0] = verbs.SGE{MR: &s.mr, Length: uint32(len(b))}
		d.wr.SGL = d.sgl[:]
	default:
		chunk, err := c.Out.sendChunk(s, len(b))
		if err != nil {
			return err
		}
		copy(chunk.Bytes(), b)
		return d.postChunk(c, op, chunk, len(b))
	}
	return d.postPrepared(c, op)
}

// prepareSend prepares d.wr for a Send. A quiet one asks for no completion.
func (d *Device) prepareSend(quiet bool) {
	d.wr.Op, d.wr.Flags = verbs.Send, verbs.Signaled
	if quiet {
		d.wr.Flags = 0
	}
}

// postChunk posts the first n bytes of chunk, with the rest of d.wr and op prepared. An error: the
// chunk is free.
func (d *Device) postChunk(c *Conn, op Posting, chunk *memory.Chunk, n int) error {
	op.chunk = chunk
	d.sgl[0] = chunk.SGE
	d.sgl[0].Length = uint32(n)
	d.wr.SGL = d.sgl[:]
	err := d.postPrepared(c, op)
	if err != nil {
		chunk.Free()
	}
	return err
}

// sendChunk returns memory to send n bytes from: s, the first message of a bundle, or what has no
// message (nil). With nothing in flight that will complete the budget does not count, because no
// completion of c would make room. It counts for a bundle, whose messages can go alone.
func (out *sending) sendChunk(s *Outgoing, n int) (*memory.Chunk, error) {
	return out.c.res.sendChunk(n, !out.Flight.willComplete() && !s.leadsBundle())
}

// postOp posts a one-sided operation.
func (d *Device) postOp(c *Conn, o *OneSided) error {
	d.wr.Op, d.wr.Flags, d.wr.RemoteAddr, d.wr.RKey = o.Op, verbs.Signaled, o.Addr, o.RKey
	d.wr.CompareAdd, d.wr.Swap, d.wr.Imm = o.CompareAdd, o.Swap, o.Imm
	if o.Fence {
		d.wr.Flags |= verbs.Fence
	}
	if o.Near.MR != nil {
		d.sgl[0] = o.Near
		d.wr.SGL = d.sgl[:]
	}
	return d.postPrepared(c, Posting{op: o})
}

// postPrepared posts the prepared work request d.wr to c's queue pair. errNoRoom: there is no room
// now.
func (d *Device) postPrepared(c *Conn, p Posting) error {
	d.wr.ID = uint64(c.Out.Flight.Push(p))
	err := c.QP.PostSend(&d.wr)
	d.wr.Inline, d.wr.SGL, d.sgl[0] = nil, nil, verbs.SGE{}
	if err != nil {
		c.Out.Flight.dropNewest()
		if errors.Is(err, unix.ENOMEM) {
			return errNoRoom
		}
		return err
	}
	c.Out.Flight.notePosted(d.wr.Flags&verbs.Signaled == 0)
	c.Out.sizes.countPosted(d.wr.Op)
	return nil
}

// Removed notes that a device has gone. dev may be nil.
func (l *Loop) Removed(dev verbs.Device) {
	for _, d := range slices.Clone(l.Devices) {
		if d.Verbs == dev {
			d.markRemoved()
		}
	}
}

// markRemoved notes that the device has gone.
func (d *Device) markRemoved() {
	d.removed = true
	d.closeUnused()
}

// closeUnused frees the resources of a device that has gone once they are unused: messages that
// owners have are in its memory.
func (d *Device) closeUnused() {
	if !d.removed || d.Conns > 0 || d.areas > 0 || d.heldByOwners() > 0 {
		return
	}
	d.l.Devices = slices.DeleteFunc(d.l.Devices, func(other *Device) bool { return other == d })
	d.close()
}

// heldByOwners returns how many receive buffers are handed out, without those posted to the device.
func (d *Device) heldByOwners() (n int) {
	for dm := range d.Domains {
		n += dm.heldByOwners()
	}
	return n
}

// close frees everything except the memory of messages that owners have. While some queue pairs are
// not gone it frees nothing, because the device may still write to the memory; its driver then has
// to close the rest.
func (d *Device) close() {
	d.Drain()
	if d.Conns > 0 {
		return
	}
	oldest := func(a, b *domain) int { return cmp.Compare(d.Domains[a], d.Domains[b]) }
	for _, dm := range slices.SortedFunc(maps.Keys(d.Domains), oldest) {
		dm.close()
	}
	for _, q := range d.Queues {
		d.logCloseError("destroy_cq", q.cq.Close())
	}
	d.Queues = nil
}

// logCloseError logs that something could not be closed. A device that has gone has taken
// everything with it.
func (d *Device) logCloseError(op string, err error) {
	if err != nil && !d.removed {
		d.l.log.Error("rdma: "+op, "device", d.Verbs.Name(), "err", err)
	}
}

// Held counts the messages that owners have not returned.
func (l *Loop) Held() (n int) {
	for _, d := range l.Devices {
		n += d.heldByOwners()
	}
	return n
}

// Full reports whether the messages of a further connection would take memory that is reserved for
// existing ones.
func (l *Loop) Full() bool { return l.Shares.isFull() }

// CrowdedFor reports whether there are so many connections that one with receives of n bytes would
// be too much.
func (l *Loop) CrowdedFor(n int) bool { return l.Shares.isCrowded() && n > eagerCrowded }

// Close frees what connections share.
func (l *Loop) Close() {
	for _, d := range l.Devices {
		d.close()
	}
	l.Devices = nil
}

// logEvent logs an event of the device. Connections that end because of it report that themselves.
// Each event has a different text: an address that comes and goes must not hide a port that has
// failed.
func (d *Device) logEvent(ev verbs.DeviceEvent, port int) {
	if ev == verbs.DeviceFatal || ev == verbs.PortError {
		d.l.log.Warn("rdma: device event: "+ev.String(), "op", ev, "device", d.Verbs.Name(), "port", port)
		return
	}
	d.l.log.Info("rdma: device event: "+ev.String(), "op", ev, "device", d.Verbs.Name(), "port", port)
}
