package network

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/sockets"
)

var _ sockets.Stack = (*Stack)(nil)

// Indexes of a machine's interfaces.
const (
	loopbackIndex = 1 // lo
	networkIndex  = 2 // eth0
)

// Stack is the sockets of a process for one of its loops.
type Stack struct {
	p   *Process
	in4 unix.SockaddrInet4
	in6 unix.SockaddrInet6
}

// Stack makes the sockets of the process for one of its loops. All loops use the same descriptors.
func (p *Process) Stack() *Stack { return &Stack{p: p} }

// Socket implements socket(2).
func (k *Stack) Socket(domain, typ int) (int, error) {
	if domain != unix.AF_INET && domain != unix.AF_INET6 {
		return -1, unix.EAFNOSUPPORT
	}
	if typ != unix.SOCK_STREAM && typ != unix.SOCK_DGRAM {
		return -1, unix.EINVAL
	}
	if err := k.p.m.injectFault("socket"); err != nil {
		return -1, err
	}
	fd, err := k.p.lowestFree()
	if err != nil {
		return -1, err
	}
	k.p.assignFD(fd, k.p.m.newSock(domain, typ == unix.SOCK_DGRAM))
	return fd, nil
}

// Bind implements bind(2).
func (k *Stack) Bind(fd int, sa unix.Sockaddr) error {
	s, to, err := k.sockAndAddr(fd, sa)
	if err != nil {
		return err
	}
	if err := k.p.m.injectFault("bind"); err != nil {
		return err
	}
	return s.bind(to)
}

// Listen implements listen(2).
func (k *Stack) Listen(fd, backlog int) error {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return err
	}
	if err := k.p.m.injectFault("listen"); err != nil {
		return err
	}
	return s.listen(backlog)
}

// Accept implements accept4(2).
func (k *Stack) Accept(fd int) (int, unix.Sockaddr, error) {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return -1, nil, err
	}
	if s.dgram {
		return -1, nil, unix.EOPNOTSUPP
	}
	if err := k.p.m.injectFault("accept"); err != nil {
		return -1, nil, err
	}
	slot, err := k.p.lowestFree()
	if err != nil {
		return -1, nil, err
	}
	c, err := s.accept()
	if err != nil {
		return -1, nil, err
	}
	k.p.assignFD(slot, c)
	if f := k.p.m.net.cfg.Accepted; f != nil && c.in.bytes.len() == 0 && !k.p.m.hasAddr(c.remote.Addr()) {
		f(k.p.m)
	}
	return slot, k.toSockaddr(c, c.remote), nil
}

// Connect implements connect(2).
func (k *Stack) Connect(fd int, sa unix.Sockaddr) error {
	s, to, err := k.sockAndAddr(fd, sa)
	if err != nil {
		return err
	}
	if err := k.p.m.injectFault("connect"); err != nil {
		return err
	}
	if s.dgram {
		return s.setDatagramPeer(to)
	}
	return s.connect(to)
}

// Disconnect removes a datagram socket's peer, address and port.
func (k *Stack) Disconnect(fd int) error {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return err
	}
	s.clearDatagramPeer()
	return nil
}

// Send implements sendmsg(2). The flags make no difference.
func (k *Stack) Send(fd int, bufs [][]byte, _ int) (int, error) {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return 0, err
	}
	if err := k.p.m.injectFault("send"); err != nil {
		return 0, err
	}
	return s.send(bufs)
}

// Recv implements recv(2).
func (k *Stack) Recv(fd int, b []byte) (int, error) { return k.Readv(fd, [][]byte{b}) }

// Readv implements readv(2).
func (k *Stack) Readv(fd int, bufs [][]byte) (int, error) {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return 0, err
	}
	if err := k.p.m.injectFault("recv"); err != nil {
		return 0, err
	}
	return s.recv(bufs)
}

// Shutdown implements shutdown(2).
func (k *Stack) Shutdown(fd, how int) error {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return err
	}
	return s.shutdown(how)
}

// Close implements close(2).
func (k *Stack) Close(fd int) error {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return err
	}
	k.p.releaseFD(fd)
	s.close()
	return nil
}

// Local implements getsockname(2).
func (k *Stack) Local(fd int) (unix.Sockaddr, error) {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return nil, err
	}
	return k.toSockaddr(s, s.local), nil
}

// Peer implements getpeername(2).
func (k *Stack) Peer(fd int) (unix.Sockaddr, error) {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return nil, err
	}
	if s.dgram && !s.remote.IsValid() || !s.dgram && !s.isLive() {
		return nil, unix.ENOTCONN
	}
	return k.toSockaddr(s, s.remote), nil
}

// SetOption implements setsockopt(2).
func (k *Stack) SetOption(fd, level, opt, value int) error {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return err
	}
	if err := k.p.m.injectFault("setsockopt"); err != nil {
		return err
	}
	return s.setOption(level, opt, value)
}

// Option implements getsockopt(2).
func (k *Stack) Option(fd, level, opt int) (int, error) {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return 0, err
	}
	return s.intOption(level, opt)
}

// SetLinger sets SO_LINGER.
func (k *Stack) SetLinger(fd int, l *unix.Linger) error {
	s, err := k.p.sockOf(fd)
	if err != nil {
		return err
	}
	s.options.linger, s.options.lingerFor = l.Onoff != 0, time.Duration(l.Linger)*time.Second
	return nil
}

// Unacknowledged implements SIOCOUTQ.
func (k *Stack) Unacknowledged(fd int) (int, error) {
	s, err := k.p.sockOf(fd)
	switch {
	case err != nil:
		return 0, err
	case s.state == stateListen:
		return 0, unix.EINVAL
	case !s.isLive():
		return 0, nil
	}
	return s.out.unackedBytes() + boolToInt(s.out.fin && !s.out.finSent), nil
}

// InterfaceIndex implements SIOCGIFINDEX.
func (k *Stack) InterfaceIndex(name string) (int, error) {
	switch name {
	case "lo":
		return loopbackIndex, nil
	case "eth0":
		return networkIndex, nil
	}
	return 0, unix.ENODEV
}

// InterfaceName implements SIOCGIFNAME.
func (k *Stack) InterfaceName(index int) (string, error) {
	switch index {
	case loopbackIndex:
		return "lo", nil
	case networkIndex:
		return "eth0", nil
	}
	return "", unix.ENODEV
}

// EphemeralPorts returns the range of ports that bind(2) chooses from: the lowest, and how many.
func (k *Stack) EphemeralPorts() (low, n int) {
	cfg := &k.p.m.net.cfg
	return cfg.LowPort, cfg.Ports
}

// ReservedPort returns false: no port is reserved.
func (k *Stack) ReservedPort(int) bool { return false }

// Random fills b with the network's random numbers.
func (k *Stack) Random(b []byte) {
	var word [8]byte
	for len(b) > 0 {
		binary.LittleEndian.PutUint64(word[:], k.p.m.net.cfg.Rand.Uint64())
		b = b[copy(b, word[:]):]
	}
}

// sockAndAddr returns the socket behind fd, and sa in the form of its family.
func (k *Stack) sockAndAddr(fd int, sa unix.Sockaddr) (*sock, netip.AddrPort, error) {
	var to netip.AddrPort
	s, err := k.p.sockOf(fd)
	if err != nil {
		return nil, to, err
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		if s.domain != unix.AF_INET {
			return nil, to, unix.EINVAL // it is too short for an IPv6 address
		}
		to = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		if s.domain != unix.AF_INET6 {
			return nil, to, unix.EAFNOSUPPORT
		}
		ip := netip.AddrFrom16(a.Addr).Unmap()
		if ip.IsLinkLocalUnicast() && ip.Is6() {
			if a.ZoneId == 0 {
				return nil, to, unix.EINVAL
			}
			ip = ip.WithZone(strconv.Itoa(int(a.ZoneId)))
		}
		to = netip.AddrPortFrom(ip, uint16(a.Port))
	default:
		return nil, to, unix.EAFNOSUPPORT
	}
	return s, to, nil
}

// toSockaddr returns an address in the form of the socket's family.
func (k *Stack) toSockaddr(s *sock, a netip.AddrPort) unix.Sockaddr {
	ip := a.Addr()
	if s.domain == unix.AF_INET {
		k.in4.Addr, k.in4.Port = ip.As4(), int(a.Port())
		return &k.in4
	}
	k.in6.Addr, k.in6.Port, k.in6.ZoneId = ip.As16(), int(a.Port()), 0
	if ip.Is6() && ip.IsLinkLocalUnicast() {
		k.in6.ZoneId = networkIndex
	}
	return &k.in6
}
