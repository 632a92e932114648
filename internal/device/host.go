package device

import (
	"net"
	"net/netip"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
)

// thisHost is the host as it is.
type thisHost struct{}

// sourceFor asks the routing tables. Connecting a datagram socket sends nothing.
func (thisHost) sourceFor(peer netip.Addr) (netip.Addr, error) {
	const discard = 9 // any port does
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, discard)))
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

func (thisHost) hostAddrs() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range list {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		// a link-local one needs its zone
		if ip = ip.Unmap(); ok && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			out = append(out, ip)
		}
	}
	return out, nil
}

// kernelDriver returns rdma_cm with the data path of the kernel's soft devices.
func kernelDriver() cmid.Driver { return ucm.New() }

func (thisHost) findDevice(local netip.Addr) (name string, ok bool, err error) {
	name, ok, err = ucm.DeviceFor(local)
	if ok && name == "" {
		name = "an RDMA device"
	}
	return name, ok, err
}
