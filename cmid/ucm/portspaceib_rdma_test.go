//go:build linux && rdma

package ucm_test

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestAddressesOfInfiniBand: RoCE has GIDs, so that an AF_IB destination is resolved, and the
// identifier has a GID of the device for its source.
// manpages: resolve_addr-11
func TestAddressesOfInfiniBand(t *testing.T) {
	if env(t, "RDMA_KIND") != "rxe" {
		t.Skip("iWARP has no GIDs")
	}
	ch, err := cmid.OpenChannel(driver())
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	list, err := cmid.LookupAddrInfo(t.Context(), "::ffff:"+env(t, "RDMA_ADDR"), "7471",
		&cmid.AddrInfo{Flags: cmid.RAIFamily | cmid.RAINumericHost, Family: cmid.FamilyIB})
	if err != nil {
		t.Fatal(err)
	}
	id, err := ch.CreateIDFor(&list[0])
	if err != nil {
		t.Fatal(err)
	}
	err = id.ResolveAddr(cmid.Addr{}, list[0].Dst, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	r := wantNext[*cmid.AddrResolved](t, ch)
	if r.Local.IB == nil || r.Local.IB.GID == [16]byte{} || r.Peer.IB == nil || r.Peer.IB.GID != list[0].Dst.IB.GID || id.Device() == nil {
		t.Errorf("%+v on %v: want GIDs, and a device", r, id.Device())
	}
	_, peer, err := id.QueryGID() // as the kernel knows it
	if err != nil {
		t.Fatal(err)
	}
	if peer.IB == nil || peer.IB.GID != list[0].Dst.IB.GID {
		t.Errorf("the kernel has resolved %v, want %v", peer, list[0].Dst)
	}
}

// TestDatagramsOfPortSpaceIB: hints of UD and RDMA_PS_IB make a datagram queue pair, as
// rdma_create_ep(3) does, and reach each other like those of RDMA_PS_UDP.
// manpages: getaddrinfo-31
func TestDatagramsOfPortSpaceIB(t *testing.T) {
	if env(t, "RDMA_KIND") != "rxe" {
		t.Skip("iWARP has no datagrams")
	}
	ch, err := cmid.OpenChannel(driver())
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(flags cmid.AddrInfoFlags, service string) (*cmid.ID, cmid.AddrInfo) {
		t.Helper()
		list, err := cmid.LookupAddrInfo(t.Context(), env(t, "RDMA_ADDR"), service,
			&cmid.AddrInfo{Flags: flags, QPType: cmid.QPTypeUD, PortSpace: cmid.PortSpaceIB})
		must(err)
		id, err := ch.CreateIDFor(&list[0])
		must(err)
		return id, list[0]
	}
	listener, ai := create(cmid.RAIPassive, "")
	must(listener.BindAddr(ai.Src))
	must(listener.Listen(1))
	active, ai := create(0, strconv.Itoa(int(listener.SrcPort())))
	must(active.ResolveAddr(cmid.Addr{}, ai.Dst, time.Second))
	wantNext[*cmid.AddrResolved](t, ch)
	must(active.ResolveRoute(time.Second))
	wantNext[*cmid.RouteResolved](t, ch)
	cq, err := active.Device().CreateCQ(8, func() {})
	must(err)
	defer cq.Close()
	attr := verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1}
	_, err = active.CreateQP(attr)
	must(err)
	must(active.Connect([]byte("who"), nil))
	request := wantNext[*cmid.ConnectRequest](t, ch)
	child := ch.ID(request.Ident())
	qp, err := child.CreateQP(attr)
	must(err)
	must(child.Accept(nil, nil))
	est := wantNext[*cmid.Established](t, ch)
	if est.UD == nil || est.UD.QPN != qp.Num() || est.UD.QKey == 0 || string(request.PrivateData[:3]) != "who" {
		t.Errorf("%+v, UD %+v: want queue pair %d, and its key", est, est.UD, qp.Num())
	}
	for _, id := range []*cmid.ID{active, child, listener} {
		must(id.Destroy())
	}
}

// wantNext waits for the next event, which must be an E.
func wantNext[E cmid.Event](t *testing.T, ch *cmid.Channel) E {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		ev, _, err := ch.GetEvent()
		if err == unix.EAGAIN && time.Now().Before(end) { //nolint:errorlint // exactly EAGAIN is promised
			continue
		}
		got, ok := ev.(E)
		if !ok {
			t.Fatalf("%+v, %v; want %T", ev, err, got)
		}
		return got
	}
}
