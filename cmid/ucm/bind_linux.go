package ucm

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
)

// bindAddr binds. After a failure with ENODEV the identifier keeps the interface, and a new
// identifier is needed.
func (id *driverID) bindAddr(a cmid.Addr) error {
	sa, err := kernelSockaddr(a)
	if err != nil {
		return err
	}
	switch err := id.in.file.Bind(id.kid, &sa); {
	case err == unix.EADDRNOTAVAIL && a.Port() != 0 && isLocal(a.Addr()): //nolint:errorlint // uabi gives bare errnos
		return cmid.ErrPortTaken
	case err != nil:
		return id.in.withoutDevices(err)
	}
	return id.queryAddrs()
}

// isLocal reports whether ip is this host's: an address of an interface, or one that means them
// all.
func isLocal(ip netip.Addr) bool {
	if ip = ip.Unmap().WithZone(""); ip.IsUnspecified() || ip.IsLoopback() {
		return true
	}
	addrs, _ := net.InterfaceAddrs() // without them the error names no port
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr() == ip
	})
}

// withoutDevices explains why an address belongs to no device.
func (in *instance) withoutDevices(err error) error {
	if err == unix.ENODEV && !in.sys.haveDevices() { //nolint:errorlint // uabi gives bare errnos
		return fmt.Errorf("%s: %w", noDevices, err)
	}
	return err
}

// noDeviceTo explains ENODEV for an address that was to be resolved: by the interface from which
// this host sends to it. Connecting a datagram socket sends nothing.
func noDeviceTo(dst netip.Addr) error {
	const discard = 9 // any port does
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, discard)))
	if err != nil {
		return unix.ENODEV
	}
	defer func() { _ = c.Close() }()
	src := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
	name := "an interface"
	interfaces, _ := net.Interfaces() // without them the address must do
	for _, i := range interfaces {
		addrs, _ := i.Addrs()
		if slices.ContainsFunc(addrs, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			ip, valid := netip.Addr{}, false
			if ok {
				ip, valid = netip.AddrFromSlice(n.IP)
			}
			return valid && ip.Unmap() == src
		}) {
			name = i.Name
			break
		}
	}
	return fmt.Errorf("this host sends to %v from %v on %s, which is no RDMA device's (`rdma link` lists those that are): %w", dst, src, name, unix.ENODEV)
}

// queryAddrs asks for the addresses and the device. The error is a *NodeGUIDError if there is a
// device that cannot be identified.
func (id *driverID) queryAddrs() error {
	r, err := id.in.file.QueryAddr(id.kid)
	if err != nil {
		return err
	}
	id.local = addrOf(&r.SrcAddr)
	if peer := addrOf(&r.DstAddr); !peer.IsZero() && !peer.IsWildcard() {
		id.peer = peer
	}
	if !hasDevice(&r) {
		return nil
	}
	d, err := id.in.findOrOpen(identOf(&r))
	if err != nil {
		return err
	}
	id.dev, id.port = d, r.PortNum
	return nil
}

// hasDevice reports whether an answer of the kernel's names a device. The node GUID of a function
// of SR-IOV may be 0, and the first device has index 0, as has none. Ports begin with 1.
func hasDevice(r *uabi.QueryAddrResp) bool { return r.NodeGUID != 0 || r.PortNum != 0 }

// identOf returns the device that an answer of the kernel's names.
func identOf(r *uabi.QueryAddrResp) deviceIdent {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], r.NodeGUID)
	return deviceIdent{binary.BigEndian.Uint64(b[:]), r.IBDevIndex}
}

func (id *driverID) resolveAddr(c *cmid.ResolveAddr) error {
	src, err := kernelSockaddr(c.Src)
	if err != nil {
		return err
	}
	dst, err := kernelSockaddr(c.Dst)
	if err != nil {
		return err
	}
	// as the kernel would, which shows an address even when it could not bind to it
	if !c.Src.IsZero() && id.local.IsZero() {
		if err = id.bindAddr(c.Src); err != nil {
			return err
		}
	}
	id.dst = c.Dst.Addr()
	if err = id.in.file.ResolveAddr(id.kid, &src, &dst, timeoutMillis(c.Timeout)); err != nil {
		_ = id.queryAddrs() // it has bound nevertheless, or there is nothing to learn
	}
	return err
}

// listen listens. That binds an identifier that is not bound.
func (id *driverID) listen(backlog int) error {
	if err := id.in.file.Listen(id.kid, int32(min(max(backlog, 0), id.in.backlog))); err != nil {
		return err
	}
	if !id.listening {
		id.listening = true
		id.in.listeners++
	}
	if id.local.IsZero() {
		return id.queryAddrs()
	}
	return nil
}

func (id *driverID) setOption(o cmid.Option, value int) error {
	if err := o.Check(value); err != nil {
		return err
	}
	raw := []byte{byte(value)}
	if o == cmid.OptionReuseAddr || o == cmid.OptionAFOnly {
		raw = binary.NativeEndian.AppendUint32(nil, uint32(value))
	}
	name := [...]uint32{
		cmid.OptionTOS: uabi.OptionIDTOS, cmid.OptionReuseAddr: uabi.OptionIDReuseAddr,
		cmid.OptionAFOnly: uabi.OptionIDAFOnly, cmid.OptionAckTimeout: uabi.OptionIDAckTimeout,
	}
	err := id.in.file.SetOption(id.kid, uabi.OptionLevelID, name[o], raw)
	if err == nil && o == cmid.OptionTOS {
		id.tos, id.hasTOS = uint8(value), true
	}
	return err
}

// timeoutMillis returns a timeout as the kernel takes it: 0 is cmid's default of 2 s.
func timeoutMillis(d time.Duration) uint32 {
	if d <= 0 {
		d = 2 * time.Second
	}
	return uint32(min((d+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
}
