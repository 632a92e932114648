//go:build linux && rdma

package ucm

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
)

// TestPeerGoesBeforeTheRTU: the peer is destroyed when this side has just sent its RTU. If it has
// not got that yet, it rejects, and the kernel reports REJECTED of an established connection. To
// this side it is over either way.
func TestPeerGoesBeforeTheRTU(t *testing.T) {
	if env(t, "RDMA_KIND") != "rxe" {
		return // on iWARP there is no RTU
	}
	c, err := cmid.OpenChannel(New(Config{NoProvider: true}))
	must(t, err)
	l, err := c.CreateID(cmid.PortSpaceTCP)
	must(t, err)
	must(t, l.BindAddr(cmid.AddrFrom(netip.MustParseAddr(env(t, "RDMA_ADDR")), 0)))
	must(t, l.Listen(0))
	for n := range uint32(20) {
		a, err := c.CreateID(cmid.PortSpaceTCP)
		must(t, err)
		must(t, a.ResolveAddr(cmid.Addr{}, l.LocalAddr(), time.Second))
		get[*cmid.AddrResolved](t, c)
		must(t, a.ResolveRoute(time.Second))
		get[*cmid.RouteResolved](t, c)
		must(t, a.Connect(nil, &cmid.ConnParam{QPNum: 1000 + 2*n}))
		p := c.ID(get[*cmid.ConnectRequest](t, c).ID)
		must(t, p.Accept(nil, &cmid.ConnParam{QPNum: 1001 + 2*n}))
		get[*cmid.ConnectResponse](t, c)
		must(t, a.Establish())
		must(t, p.Destroy())
		get[*cmid.Disconnected](t, c)
		must(t, a.Disconnect())
		must(t, a.Destroy())
	}
	must(t, l.Destroy())
	must(t, c.Close())
}
