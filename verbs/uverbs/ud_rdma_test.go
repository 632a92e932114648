//go:build linux && rdma

package uverbs

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

const testKey = 0x1234567

// datagrams returns n datagram queue pairs that are ready.
func datagrams(t *testing.T, n int) (r *rig, out []*side) {
	t.Helper()
	if onSIW(t) {
		t.Skip("siw has no datagrams")
	}
	r = newRig(t, eventloop.Config{})
	for range n {
		s := r.side(verbs.UD, nil)
		r.must(s.qp.Modify(&verbs.QPAttr{State: verbs.QPInit, Port: 1, QKey: testKey},
			verbs.QPAttrState|verbs.QPAttrPKeyIndex|verbs.QPAttrPort|verbs.QPAttrQKey))
		r.must(s.qp.Modify(&verbs.QPAttr{State: verbs.QPRTR}, verbs.QPAttrState))
		r.must(s.qp.Modify(&verbs.QPAttr{State: verbs.QPRTS}, verbs.QPAttrState|verbs.QPAttrSQPSN))
		out = append(out, s)
	}
	return r, out
}

func TestUDThereAndBack(t *testing.T) {
	r, s := datagrams(t, 2)
	a, b := s[0], s[1]
	index, gid := r.gid()
	ah, err := r.dev.CreateAH(nil, &verbs.AHAttr{Global: true, Port: 1, GRH: verbs.GlobalRoute{DGID: gid, SGIDIndex: index, HopLimit: 64}})
	r.must(err)
	for i := range 2 {
		a.recv(i, 256)
		b.recv(i, 256)
	}
	a.must(a.qp.PostSend(&verbs.SendWR{ID: 1, Flags: verbs.Signaled, Inline: []byte("there"), AH: ah, RemoteQPN: b.qp.Num(), RemoteQKey: testKey}))
	r.until("the datagram", func() bool { return len(b.done) == 1 && len(a.done) == 1 })
	wc := b.done[0]
	if got := string(b.slot(0)[verbs.GRHLen:wc.Bytes]); got != "there" || wc.SrcQPN != a.qp.Num() || !wc.GRH {
		t.Fatalf("received %q as %+v", got, wc)
	}
	attr, err := r.dev.InitAHFromWC(&wc, b.slot(0)[:verbs.GRHLen])
	r.must(err)
	if attr.GRH.DGID != gid || attr.GRH.SGIDIndex != index || !attr.Global {
		t.Errorf("the way back is %+v, want to %x from GID %d", attr, gid, index)
	}
	back, err := r.dev.CreateAH(nil, &attr)
	r.must(err)
	b.must(b.qp.PostSend(&verbs.SendWR{Op: verbs.SendWithImm, Imm: 77, Inline: []byte("back"), AH: back, RemoteQPN: wc.SrcQPN, RemoteQKey: testKey}))
	r.until("the answer", func() bool { return len(a.of(verbs.Recv)) == 1 })
	if wc := a.of(verbs.Recv)[0]; string(a.slot(0)[verbs.GRHLen:wc.Bytes]) != "back" || !wc.HasImm || wc.Imm != 77 {
		t.Errorf("received %+v", wc)
	}
	r.must(ah.Close())
	r.must(back.Close())
}

func TestUDMulticast(t *testing.T) {
	r, s := datagrams(t, 3)
	group := [16]byte{10: 0xff, 11: 0xff, 12: 239, 13: 1, 14: 2, 15: 3}
	for _, q := range s[1:] {
		q.recv(0, 256)
		q.must(q.qp.Attach(group, 0))
	}
	index, _ := r.gid()
	ah, err := r.dev.CreateAH(nil, &verbs.AHAttr{Global: true, Port: 1, GRH: verbs.GlobalRoute{DGID: group, SGIDIndex: index, HopLimit: 1}})
	r.must(err)
	s[0].must(s[0].qp.PostSend(&verbs.SendWR{ID: 1, Flags: verbs.Signaled, Inline: []byte("x"), AH: ah, RemoteQPN: 0xffffff, RemoteQKey: testKey}))
	s[0].until("it to leave", func() bool { return len(s[0].done) == 1 })
	for _, q := range s[1:] {
		q.must(q.qp.Detach(group, 0))
	}
	if err := s[1].qp.Detach(group, 0); err == nil {
		t.Error("a group was left twice")
	}
	r.must(s[1].qp.Attach(group, 0))
	r.must(s[1].qp.Destroy()) // leaves the group
}

// TestUDToNobody: an address that does not answer delays nothing else.
func TestUDToNobody(t *testing.T) {
	r, s := datagrams(t, 2)
	index, gid := r.gid()
	gid[15] = 211 // not in use
	later := r.dev.CreateAHLater(nil, &verbs.AHAttr{
		Global: true, Port: 1, GRH: verbs.GlobalRoute{DGID: gid, SGIDIndex: index, HopLimit: 64},
	})
	came := make(chan error, 1)
	go func() { came <- later.Wait() }()
	time.Sleep(100 * time.Millisecond)
	begin := time.Now()
	s[0].must(s[0].qp.Modify(&verbs.QPAttr{State: verbs.QPError}, verbs.QPAttrState))
	took := time.Since(begin)
	select {
	case err := <-came:
		t.Errorf("the kernel has not looked for it: %v", err)
	default:
	}
	if ah, err := later.End(<-came); ah != nil || err == nil {
		t.Errorf("a handle for nobody: %v, %v", ah, err)
	}
	t.Logf("another command has taken %v meanwhile", took)
	if took > 300*time.Millisecond {
		t.Errorf("another command has waited %v for it", took)
	}
}
