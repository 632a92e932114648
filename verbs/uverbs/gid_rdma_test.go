//go:build linux && rdma

package uverbs

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// The source of an answer is the address to which the datagram was sent. By then that address may
// have another index in the port's table, and its old index may belong to another address.
func TestGIDsMove(t *testing.T) {
	if onSIW(t) {
		t.Skip("siw has no datagrams")
	}
	r := newRig(t, eventloop.Config{})
	has := func(ip netip.Addr) (index uint8, ok bool) {
		i, err := findGID(filepath.Join("/sys/class/infiniband", r.dev.name, "ports/1"), ip.As16())
		return i, err == nil
	}
	address := func(do string, ip netip.Addr) { // and waits until the kernel has noticed
		t.Helper()
		if out, err := exec.Command("ip", "addr", do, ip.String()+"/24", "dev", env(t, "RDMA_NETDEV")).CombinedOutput(); err != nil {
			t.Fatalf("ip addr %s %v: %v: %s", do, ip, err, out)
		}
		r.until("the GID table", func() bool { _, ok := has(ip); return ok == (do == "add") })
	}
	one, two := netip.MustParseAddr("10.10.1.51"), netip.MustParseAddr("10.10.1.52")
	answer := func() verbs.AHAttr {
		t.Helper()
		var grh [verbs.GRHLen]byte
		ip := grh[20:]
		ip[0] = 0x45
		copy(ip[12:], netip.MustParseAddr(env(t, "RDMA_ADDR2")).AsSlice())
		copy(ip[16:], one.AsSlice())
		attr, err := r.dev.InitAHFromWC(&verbs.WC{GRH: true}, grh[:])
		r.must(err)
		if want, _ := has(one); attr.GRH.SGIDIndex != want {
			t.Errorf("the answer's source is GID %d, want %d", attr.GRH.SGIDIndex, want)
		}
		ah, err := r.dev.CreateAH(nil, &attr)
		if err != nil {
			t.Errorf("an address handle for the answer: %v", err)
			return attr
		}
		r.must(ah.Close())
		return attr
	}
	address("add", one)
	before := answer()
	address("del", one)
	address("add", two) // takes the index
	defer address("del", two)
	address("add", one)
	defer address("del", one)
	if after := answer(); after.GRH.SGIDIndex == before.GRH.SGIDIndex {
		t.Errorf("the address has the place %d again: this tests nothing", after.GRH.SGIDIndex)
	}
}
