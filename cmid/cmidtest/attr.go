package cmidtest

import (
	"cmp"
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// The masks that the kernel answers rdma_init_qp_attr(3) with.
const (
	maskIWARP = verbs.QPAttrState | verbs.QPAttrAccessFlags | verbs.QPAttrPort
	maskInit  = maskIWARP | verbs.QPAttrPKeyIndex
	maskUD    = verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey
	maskRTR   = verbs.QPAttrState | verbs.QPAttrAV | verbs.QPAttrPathMTU | verbs.QPAttrDestQPN | verbs.QPAttrRQPSN |
		verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
	maskRTS = verbs.QPAttrState | verbs.QPAttrTimeout | verbs.QPAttrRetryCount | verbs.QPAttrRNRRetry | verbs.QPAttrSQPSN |
		verbs.QPAttrMaxRDAtomic

	remoteWrite, remoteRead, remoteAtomic = 2, 4, 8 // enum ibv_access_flags

	mtu1024    = 3
	ackTimeout = 19
)

// InitQPAttr is rdma_init_qp_attr(3).
func (id *driverID) InitQPAttr(s verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	f, attr := id.in.f, verbs.QPAttr{State: s, Port: 1}
	switch {
	case f.embedded:
		return verbs.QPAttr{}, 0, cmid.ErrNotSupported
	case id.dev == nil:
		return verbs.QPAttr{}, 0, unix.EINVAL
	case id.state == states.Removed:
		return verbs.QPAttr{}, 0, unix.ENXIO
	case id.ps.Datagram():
		attr.QKey = globalQKey
		return attr, maskUD, nil
	case id.state < states.Connecting && f.iwarp:
		return attr, maskIWARP, nil
	case id.state < states.Connecting:
		return attr, maskInit, nil
	case f.iwarp:
		return attrIWARP(attr)
	case id.state == states.Connecting && s != verbs.QPInit:
		return verbs.QPAttr{}, 0, unix.EINVAL
	}
	return id.attrIB(attr, id.wayTo(id.peer.Addr()), id.cm.isPassive())
}

// attrIWARP returns few attributes, because an iWARP device brings the queue pair to RTS.
func attrIWARP(attr verbs.QPAttr) (verbs.QPAttr, verbs.QPAttrMask, error) {
	switch attr.State {
	case verbs.QPInit, verbs.QPRTR:
		attr.AccessFlags = remoteWrite | remoteRead
		return attr, maskIWARP, nil
	case verbs.QPRTS:
		return attr, verbs.QPAttrPort, nil
	}
	return verbs.QPAttr{}, 0, unix.EINVAL
}

// params are the connection parameters of both ends.
type params struct {
	own     cmid.ConnParam
	peers   cmid.ConnParam // the peer's
	ord     uint8          // how many Reads may be outstanding: as many as the peer serves
	network transit
}

// depths returns the Reads that this side serves, and those that it may request. The embedded
// device reports them.
func (p *params) depths() cmid.ConnParam {
	return cmid.ConnParam{ResponderResources: p.own.ResponderResources, InitiatorDepth: p.ord}
}

// attrIB returns the attributes of a queue pair whose peer is reached by way. passive is true for
// the queue pair of a request.
func (p *params) attrIB(attr verbs.QPAttr, way verbs.AHAttr, passive bool) (verbs.QPAttr, verbs.QPAttrMask, error) {
	switch attr.State {
	case verbs.QPInit:
		attr.AccessFlags = remoteWrite
		if p.own.ResponderResources > 0 {
			attr.AccessFlags |= remoteRead | remoteAtomic
		}
		return attr, maskInit, nil
	case verbs.QPRTR:
		attr.AH, attr.PathMTU, attr.DestQPN, attr.RQPSN = way, mtu1024, p.peers.QPNum, p.peers.QPNum
		attr.MaxDestRDAtomic, attr.AH.GRH.TrafficClass = p.peers.InitiatorDepth, p.network.ofRequest
		return attr, maskRTR, nil
	case verbs.QPRTS:
		attr.Timeout, attr.RetryCount, attr.RNRRetry = ackTimeout, p.peers.RetryCount, p.peers.RNRRetryCount
		if !passive {
			attr.RetryCount = p.own.RetryCount
		}
		if p.network.waits {
			attr.Timeout = p.network.ack
		}
		attr.SQPSN, attr.MaxRDAtomic = p.own.QPNum, p.peers.ResponderResources
		return attr, maskRTS, nil
	}
	return verbs.QPAttr{}, 0, unix.EINVAL
}

// transit is an identifier's knowledge of the way through the network.
type transit struct {
	class     uint8 // traffic class
	chosen    bool  // and it was set
	ofRequest uint8 // the traffic class that the request has
	ack       uint8 // the acknowledgement's timeout
	waits     bool  // and it was set
	path      cmid.Path
}

// noteQPSetup notes how a queue pair of the driver's is set up, before the connection is
// established.
func (id *driverID) noteQPSetup(p *cmid.ConnParam) {
	if id.qp == nil {
		return
	}
	n, way, passive := &id.network, id.wayTo(id.peer.Addr()), id.cm.isPassive()
	rtr, _, _ := id.attrIB(verbs.QPAttr{State: verbs.QPRTR}, way, passive)
	rts, _, _ := id.attrIB(verbs.QPAttr{State: verbs.QPRTS}, way, passive)
	if passive && n.chosen {
		rtr.AH.GRH.TrafficClass = n.class
	}
	if passive && p != nil && p.RetryCount > 0 {
		rts.RetryCount = p.RetryCount
	}
	rts.RetryCount = min(rts.RetryCount, retries)
	rtr.MinRNRTimer = cmp.Or(id.own.MinRNRTimer, cmid.DefaultMinRNRTimer)
	n.path = cmid.PathOf(&rtr, &rts)
	n.path.GIDType, n.path.NetDev = "RoCE v2", id.dev.name
}

// Path is how the queue pair was set up. TCP takes only the traffic class.
func (id *driverID) Path() cmid.Path {
	if id.in.f.embedded {
		return cmid.Path{TrafficClass: id.network.class}
	}
	return id.network.path
}

// A path record's flags, and the offsets of its fields (struct ibv_path_record behind eight bytes
// of struct ibv_path_data).
const (
	pathUsable = 0x2b // GMP, primary, bidirectional
	pathDGID   = 8 + 8
	pathSGID   = pathDGID + 16
)

// QueryPath returns the path record. RoCE has one once its route is resolved. iWARP has none.
func (id *driverID) QueryPath() ([]byte, error) {
	switch {
	case id.in.f.embedded:
		return nil, cmid.ErrNotSupported
	case id.dev == nil || id.in.f.iwarp || id.state < states.RouteResolved || id.state == states.Listening:
		return nil, nil
	}
	b := make([]byte, cmid.PathLen)
	binary.NativeEndian.PutUint32(b, pathUsable)
	dst, src := id.peer.Addr().As16(), id.local.Addr().As16()
	copy(b[pathDGID:], dst[:])
	copy(b[pathSGID:], src[:])
	return b, nil
}

// QueryGID returns the addresses in the form of RoCE v2. On iWARP the kernel's answer has no
// meaning, so the twin returns the same there.
func (a *addresses) QueryGID() (local, peer cmid.Addr, err error) {
	if a.self.in.f.embedded {
		return cmid.Addr{}, cmid.Addr{}, cmid.ErrNotSupported
	}
	return asIB(a.ps, a.local), asIB(a.ps, a.peer), nil
}

func asIB(ps cmid.PortSpace, a cmid.Addr) cmid.Addr {
	ip := a.Addr()
	if !ip.IsValid() {
		ip = netip.IPv6Unspecified()
	}
	return cmid.Addr{IB: &cmid.SockaddrIB{
		PKey: 0xffff, GID: ip.As16(), SID: uint64(ps)<<16 | uint64(a.Port()), SIDMask: ^uint64(0),
	}}
}

// setIBPath implements rdma_set_option(3) with RDMA_OPTION_IB_PATH. It accepts any usable record.
func (id *driverID) setIBPath(paths []byte) error {
	if len(paths)%cmid.PathLen != 0 {
		return unix.EINVAL
	}
	for ; len(paths) > 0; paths = paths[cmid.PathLen:] {
		if binary.NativeEndian.Uint32(paths) == pathUsable {
			id.state = states.RouteQuery
			id.runLater(id.routeResolved)
			return nil
		}
	}
	return unix.EINVAL
}
