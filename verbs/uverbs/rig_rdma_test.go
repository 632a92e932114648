//go:build linux && rdma

package uverbs

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// rig is a real device on a loop that the test runs.
type rig struct {
	testing.TB
	loop *eventloop.Loop
	dev  *device
}

// env returns the environment variable that describes the machine of the test.
func env(tb testing.TB, name string) string {
	tb.Helper()
	v := os.Getenv(name)
	if v == "" {
		tb.Fatalf("%s is not set: these tests need a machine with an RDMA device", name)
	}
	return v
}

func onSIW(tb testing.TB) bool { return env(tb, "RDMA_KIND") == "siw" }

func newRig(tb testing.TB, cfg eventloop.Config) *rig {
	tb.Helper()
	l, err := eventloop.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{TB: tb, loop: l}
	d, err := Provider{}.Open(l, verbs.DeviceIdent{Name: env(tb, "RDMA_DEVICE")})
	r.must(err)
	r.dev = d.(*device)
	tb.Cleanup(func() {
		r.must(d.Close())
		r.must(l.Shutdown(context.Background()))
	})
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// until runs the loop while ok returns false.
func (r *rig) until(why string, ok func() bool) {
	r.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := r.loop.AfterFunc(10*time.Millisecond, func() {})
	for !ok() {
		if time.Now().After(deadline) {
			r.Fatalf("waited in vain for %s", why)
		}
		tick.Reset(10 * time.Millisecond)
		r.must(r.loop.Turn())
	}
	tick.Stop()
}

// gid returns the index and the value of the device's GID for its first address.
func (r *rig) gid() (uint8, [16]byte) {
	r.Helper()
	gid := netip.MustParseAddr(env(r, "RDMA_ADDR")).As16()
	i, err := findGID(filepath.Join("/sys/class/infiniband", r.dev.name, "ports/1"), gid)
	r.must(err)
	return i, gid
}

// side is a queue pair with its completion queue and some memory.
type side struct {
	*rig
	cq    verbs.CQ
	qp    verbs.ProviderQP
	mr    *verbs.MR
	wc    [16]verbs.WC
	done  []verbs.WC
	calls int
}

const slotLen = 4096

func (r *rig) side(t verbs.QPType, change func(*verbs.QPInitAttr)) *side {
	r.Helper()
	s := &side{rig: r}
	var err error
	s.cq, err = r.dev.CreateCQ(64, func() { s.calls++; s.poll() })
	r.must(err)
	attr := verbs.QPInitAttr{SendCQ: s.cq, RecvCQ: s.cq, MaxSendWR: 16, MaxRecvWR: 16, Context: s}
	if change != nil {
		change(&attr)
	}
	s.qp, err = r.dev.CreateQP(t, attr)
	r.must(err)
	s.mr, err = r.dev.Alloc(32*slotLen, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	r.must(err)
	return s
}

func (s *side) poll() {
	for n := s.cq.Poll(s.wc[:]); n > 0; n = s.cq.Poll(s.wc[:]) {
		s.done = append(s.done, s.wc[:n]...)
	}
}

// recv posts slot i for a receive of n bytes.
func (s *side) recv(i, n int) {
	s.Helper()
	s.must(s.qp.PostRecv(verbs.RecvWR{ID: uint64(100 + i), SGE: verbs.SGE{MR: s.mr, Offset: uint32(i * slotLen), Length: uint32(n)}}))
}

func (s *side) slot(i int) []byte { return s.mr.Bytes[i*slotLen : (i+1)*slotLen] }

// send posts text from slot 16+i.
func (s *side) send(i int, text string) {
	s.Helper()
	copy(s.slot(16+i), text)
	s.must(s.qp.PostSend(&verbs.SendWR{ID: uint64(i), Flags: verbs.Signaled, SGL: []verbs.SGE{s.part(i, len(text))}}))
}

func (s *side) part(i, n int) verbs.SGE {
	return verbs.SGE{MR: s.mr, Offset: uint32((16 + i) * slotLen), Length: uint32(n)}
}

// of returns the completions of one kind.
func (s *side) of(op verbs.Opcode) (wc []verbs.WC) {
	for _, c := range s.done {
		if c.Op == op {
			wc = append(wc, c)
		}
	}
	return wc
}

// connect brings two queue pairs of an InfiniBand device to RTS by hand.
func (r *rig) connect(a, b *side) {
	r.Helper()
	index, gid := r.gid()
	for _, x := range [][2]*side{{a, b}, {b, a}} {
		me, peer := x[0].qp, x[1].qp
		r.must(me.Modify(&verbs.QPAttr{State: verbs.QPInit, Port: 1, AccessFlags: 15},
			verbs.QPAttrState|verbs.QPAttrPKeyIndex|verbs.QPAttrPort|verbs.QPAttrAccessFlags))
		r.must(me.Modify(&verbs.QPAttr{
			State: verbs.QPRTR, PathMTU: 3, DestQPN: peer.Num(), RQPSN: 1000, MaxDestRDAtomic: 4, MinRNRTimer: 12,
			AH: verbs.AHAttr{Global: true, Port: 1, GRH: verbs.GlobalRoute{DGID: gid, SGIDIndex: index, HopLimit: 64}},
		}, verbs.QPAttrState|verbs.QPAttrAV|verbs.QPAttrPathMTU|verbs.QPAttrDestQPN|verbs.QPAttrRQPSN|verbs.QPAttrMaxDestRDAtomic|
			verbs.QPAttrMinRNRTimer))
		r.must(me.Modify(&verbs.QPAttr{State: verbs.QPRTS, SQPSN: 1000, Timeout: 14, RetryCount: 7, RNRRetry: 7, MaxRDAtomic: 4},
			verbs.QPAttrState|verbs.QPAttrSQPSN|verbs.QPAttrTimeout|verbs.QPAttrRetryCount|verbs.QPAttrRNRRetry|verbs.QPAttrMaxRDAtomic))
	}
}
