package cmidtest

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest/internal/memory"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// ah is an address handle.
type ah struct {
	object
	src, dst netip.Addr
}

// Close destroys the handle.
func (h *ah) Close() error {
	if h.closed {
		return unix.EINVAL
	}
	return h.close()
}

// CreateAH makes an address handle. As on RoCE, its address vector must have a global route from
// one of the port's addresses.
func (v *view) CreateAH(named verbs.PD, attr *verbs.AHAttr) (verbs.AH, error) {
	if v.in.f.iwarp {
		return nil, verbs.ErrNotSupported
	}
	p, err := v.Domain(named)
	if err != nil || attr == nil || !attr.Global || attr.Port != 1 || int(attr.GRH.SGIDIndex) >= len(v.dev.addrs) {
		return nil, unix.EINVAL
	}
	src, dst := v.dev.addrs[attr.GRH.SGIDIndex].Addr(), netip.AddrFrom16(attr.GRH.DGID).Unmap()
	if dst.IsUnspecified() || dst.Is4() != src.Is4() {
		return nil, unix.EINVAL
	}
	o, err := v.newObject(resAH, p)
	if err != nil {
		return nil, err
	}
	return &ah{o, src, dst}, nil
}

// wayTo returns the address vector from the local address to ip.
func (a *addresses) wayTo(ip netip.Addr) verbs.AHAttr {
	return a.dev.wayTo(a.local.Addr().WithZone(""), ip.WithZone(""))
}

// wayTo returns the address vector from one of the device's addresses to another host's.
func (d *device) wayTo(from, to netip.Addr) verbs.AHAttr {
	i := slices.IndexFunc(d.addrs, func(p netip.Prefix) bool { return p.Addr() == from })
	return verbs.AHAttr{
		Global: true, Port: 1,
		GRH: verbs.GlobalRoute{DGID: to.As16(), SGIDIndex: uint8(max(i, 0)), HopLimit: 64},
	}
}

// InitAHFromWC returns the address vector of a datagram's sender. It takes it from the header that
// routingHeader wrote. For a datagram to a group it fails, because the header does not name an
// address of the receiver.
func (v *view) InitAHFromWC(wc *verbs.WC, grh []byte) (verbs.AHAttr, error) {
	if v.in.f.iwarp {
		return verbs.AHAttr{}, verbs.ErrNotSupported
	}
	if wc == nil || !wc.GRH || len(grh) < verbs.GRHLen {
		return verbs.AHAttr{}, unix.EINVAL
	}
	var src, dst netip.Addr
	switch {
	case grh[20] == 4<<4|5 && checksum(grh[20:40]) == 0:
		src, dst = netip.AddrFrom4([4]byte(grh[32:36])), netip.AddrFrom4([4]byte(grh[36:40]))
	case grh[0]>>4 == 6:
		src, dst = netip.AddrFrom16([16]byte(grh[8:24])), netip.AddrFrom16([16]byte(grh[24:40]))
	default:
		return verbs.AHAttr{}, unix.EINVAL
	}
	if !slices.ContainsFunc(v.dev.addrs, func(p netip.Prefix) bool { return p.Addr() == dst }) {
		return verbs.AHAttr{}, unix.EINVAL
	}
	return v.dev.wayTo(dst, src), nil
}

// routingHeader writes the header that is in front of a received datagram on RoCE v2. It is an IPv6
// header, or an IPv4 header in the last 20 bytes.
func routingHeader(h []byte, src, dst netip.Addr, payload int) {
	clear(h)
	if src.Is6() {
		h[0], h[6], h[7] = 6<<4, 17, 64
		binary.BigEndian.PutUint16(h[4:], uint16(payload))
		copy(h[8:], src.AsSlice())
		copy(h[24:], dst.AsSlice())
		return
	}
	h = h[20:]
	h[0], h[8], h[9] = 4<<4|5, 64, 17
	binary.BigEndian.PutUint16(h[2:], uint16(20+payload))
	copy(h[12:], src.AsSlice())
	copy(h[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(h[10:], checksum(h[:20]))
}

// checksum returns the Internet checksum. Over a header that contains its checksum it is 0.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// postDatagram sends one datagram. Its work request succeeds whether the datagram arrives or not.
func (q *qp) postDatagram(wr *verbs.SendWR) error {
	n, ok := q.bytesOf(wr)
	h, _ := wr.AH.(*ah)
	switch {
	case !ok, wr.Op != verbs.Send && wr.Op != verbs.SendWithImm, n > maxDatagram, h == nil || h.closed || h.pd != q.pd:
		return unix.EINVAL
	case q.sends.Len() >= q.attr.MaxSendWR:
		return unix.ENOMEM
	}
	e := sendEntry{wr: *wr, n: n, done: true}
	p := packet{kind: MsgDatagram, from: q.id.self, src: h.src, imm: wr.Imm, flags: e.wireFlags()}
	for _, m := range q.in.f.receiversOf(h.dst, wr.RemoteQPN) {
		p.to, p.dst, p.data = m.q.id.self, m.ip, e.gatherBytes()
		p.ud = datagram{to: m.q.num, from: q.num, key: wr.RemoteQKey}
		if h.dst.IsMulticast() {
			p.ud.group = h.dst
		}
		q.in.f.sendPacket(p)
	}
	e.wr.Inline, e.wr.SGL = nil, nil
	q.sends.Push(e)
	q.next++
	q.settleLater()
	return nil
}

// receiversOf lists the receivers of a datagram to ip: one queue pair, or the members of a group.
func (f *Fabric) receiversOf(ip netip.Addr, num uint32) []member {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ip.IsMulticast() {
		return slices.Clone(f.members[ip])
	}
	if d := f.addrs[ip]; d != nil {
		if q := d.host.datagrams[num]; q != nil && q.view.dev == d {
			return []member{{q, ip}}
		}
	}
	return nil
}

// gotDatagram puts a datagram into a receive, or drops it.
func (q *qp) gotDatagram(p *packet) {
	if q == nil || q.over || q.num != p.ud.to || p.ud.key != globalQKey {
		return
	}
	wr, ok := q.takeRecv()
	switch {
	case !ok || q.over:
		return
	case !q.pd.Holds(wr.SGE, verbs.LocalWrite):
		q.rq.add(verbs.WC{ID: wr.ID, Status: verbs.StatusLocProt, Op: verbs.Recv, QP: q}, false)
		q.fail()
		return
	case verbs.GRHLen+len(p.data.b) > int(wr.SGE.Length):
		q.giveBack(wr)
		return
	}
	to := memory.Bytes(wr.SGE)
	dst := p.dst
	if p.ud.group.IsValid() {
		dst = p.ud.group
	}
	routingHeader(to[:verbs.GRHLen], p.src, dst, len(p.data.b))
	n := copy(to[verbs.GRHLen:], p.data.b)
	wc := verbs.WC{ID: wr.ID, Op: verbs.Recv, QP: q, Bytes: uint32(verbs.GRHLen + n), SrcQPN: p.ud.from, GRH: true}
	p.addImmediate(&wc)
	q.addCompletion(q.rq, wc, p.flags&flagSolicited != 0)
}

// giveBack undoes takeRecv.
func (q *qp) giveBack(wr verbs.RecvWR) {
	if q.srq != nil {
		q.srq.posted.PushFront(wr)
	} else {
		q.recvs.PushFront(wr)
	}
}

// unregisterDatagram takes a datagram queue pair out of its host and of its groups.
func (q *qp) unregisterDatagram() {
	f := q.in.f
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(q.in.host.datagrams, q.num)
	for group := range f.members {
		f.detachLocked(group, q)
	}
}

// detachLocked takes a queue pair out of a group.
func (f *Fabric) detachLocked(group netip.Addr, q *qp) {
	left := slices.DeleteFunc(f.members[group], func(m member) bool { return m.q == q })
	if f.members[group] = left; len(left) == 0 {
		delete(f.members, group)
	}
}

// groups are the multicast groups that an identifier has joined.
type groups struct {
	id     *driverID
	joined map[netip.Addr]*cmid.JoinMulticast
}

// join does what RoCE does: it accepts IPv4 groups only. For others it returns 524 (ENOTSUPP),
// which is internal to the kernel and leaks out of it.
func (g *groups) join(c *cmid.JoinMulticast) error {
	const notSupported = unix.Errno(524)
	group := c.Addr.Addr()
	switch {
	case !group.IsValid() || group.IsUnspecified():
		return unix.EINVAL
	case group.Is6():
		return notSupported
	case g.joined[group] != nil:
		return unix.EADDRINUSE
	}
	if g.joined == nil {
		g.joined = make(map[netip.Addr]*cmid.JoinMulticast)
	}
	g.joined[group] = c
	id := g.id
	id.runLater(func() {
		if g.joined[group] != c {
			return // left again
		}
		if id.qp != nil && !c.SendOnly {
			f := id.in.f
			f.mu.Lock()
			f.members[group] = append(f.members[group], member{id.qp, id.local.Addr()})
			f.mu.Unlock()
		}
		id.in.deliverEvent(id, cmid.DriverEvent{
			Kind: states.KindMulticastJoin, Addr: c.Addr, AH: id.wayTo(group),
			Param: cmid.ConnParam{QPNum: multicastQPN, QKey: globalQKey},
		})
	})
	return nil
}

const (
	multicastQPN = 0xffffff
	globalQKey   = 0x01234567 // RDMA_UDP_QKEY
)

func (g *groups) leave(a cmid.Addr) error {
	if g.joined[a.Addr()] == nil {
		return unix.EADDRNOTAVAIL
	}
	delete(g.joined, a.Addr())
	if q := g.id.qp; q != nil {
		f := q.in.f
		f.mu.Lock()
		defer f.mu.Unlock()
		f.detachLocked(a.Addr(), q)
	}
	return nil
}
