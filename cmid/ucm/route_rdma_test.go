//go:build linux && rdma

package ucm_test

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// An address that is reached through an interface without an RDMA device fails with that
// interface's name.
func TestAddressBehindAPlainInterface(t *testing.T) {
	leavesNothing(t)
	s := newSide(t)
	defer s.close()
	id := s.create(cmid.PortSpaceTCP)
	peer := addr(t, "RDMA_PLAIN_ADDR").Next()
	s.must(id.ResolveAddr(cmid.Addr{}, cmid.AddrFrom(peer, 7471), 0))
	err := await[*cmid.AddrError](s, id)
	wantErrno(t, err, unix.ENODEV, "on pl0, which is no RDMA device's", netip.AddrPortFrom(peer, 7471).String())
	if !strings.Contains(err.Error(), "from 10.10.9.1") {
		t.Errorf("%v does not say where this host sends from", err)
	}
}
