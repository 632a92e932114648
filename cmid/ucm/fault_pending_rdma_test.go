//go:build linux && rdma

package ucm_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// A listener that goes takes the unfetched requests with it; those that were fetched can still be
// answered.
func TestFaultListenerGoes(t *testing.T) {
	leavesNothing(t)
	a, b := newSide(t), newSide(t)
	defer a.close()
	defer b.close()
	l := b.listen("RDMA_ADDR", 0)
	const n = 4
	var fetched, asked, unread []*conn
	for range n {
		asked = append(asked, a.connect(l.LocalAddr()))
		fetched = append(fetched, b.request())
	}
	for range n {
		unread = append(unread, a.connect(l.LocalAddr()))
	}
	if !b.readable(faultPatience) {
		t.Fatal("no request")
	}
	time.Sleep(faultQuiet) // a pause for the last one
	b.destroy(l)
	for _, c := range unread {
		await[*cmid.Rejected](a, c.id)
	}
	b.must(fetched[0].id.Accept(nil, nil))
	b.must(fetched[1].id.Accept(nil, nil))
	b.must(fetched[2].id.Reject(nil))
	b.destroy(fetched[3].id)
	for _, c := range asked[:2] {
		await[*cmid.Established](a, c.id)
	}
	for _, c := range asked[2:] {
		await[*cmid.Rejected](a, c.id)
	}
	a.quiet()
	b.quiet()
	for i, c := range append(asked, unread...) {
		want := "AddrResolved RouteResolved Rejected"
		if i < 2 {
			want = "AddrResolved RouteResolved Established"
		}
		a.wantDelivered(c.id, want)
	}
	for i, c := range fetched {
		want := "ConnectRequest"
		if i < 2 {
			want = "ConnectRequest Established"
		}
		b.wantDelivered(c.id, want)
	}
	if got := strings.Count(b.all(), "ConnectRequest"); got != n {
		t.Errorf("notified of %d requests, want the %d that were fetched before", got, n)
	}
}

// More simultaneous requests than a listener has room for: InfiniBand asks again until there is
// room, iWARP is refused. Each client gets one result.
func TestFaultBacklogOverflows(t *testing.T) {
	// InfiniBand's come again together, every 6 s, and find as much room again
	clients, room := 200, 100
	siw := env(t, "RDMA_KIND") == "siw"
	if siw {
		// One that siw forgets until its MPA timeout of 10 s gets Unreachable; then siw
		// miscounts the listener's references: a warning of siw_cep_put when the listener goes,
		// and an identifier that stays.
		clients, room = 24, 8
	} else {
		leavesNothing(t)
	}
	a, b := newSide(t), newSide(t)
	defer a.close()
	defer b.close()
	l := b.listen("RDMA_ADDR", room)
	var ids []*cmid.ID
	var queue verbs.CQ
	for range clients {
		id := a.resolved(l.LocalAddr())
		if queue == nil {
			var err error
			queue, err = id.Device().CreateCQ(2*clients, func() {})
			a.must(err)
		}
		_, err := id.CreateQP(verbs.QPInitAttr{SendCQ: queue, RecvCQ: queue, MaxSendWR: 1, MaxRecvWR: 1})
		a.must(err)
		ids = append(ids, id)
	}
	begin := time.Now()
	for _, id := range ids {
		a.must(id.Connect(nil, nil))
	}
	for range 10 {
		a.turn(100 * time.Millisecond)
	}
	// On siw, fetch no request before the last client has connected: each fetch makes room for
	// another request. If siw forgets a request, it refuses one client less.
	for siw && strings.Count(a.all(), "Rejected") < clients-room && time.Since(begin) < 5*time.Second {
		a.turn(100 * time.Millisecond)
	}
	early := strings.Count(a.all(), "Rejected")
	requests, answered := 0, 0
	for answered < clients && time.Since(begin) < faultPatience {
		b.turn(10 * time.Millisecond)
		for _, e := range b.delivered {
			if r, ok := e.ev.(*cmid.ConnectRequest); ok && !e.taken {
				e.taken = true
				requests++
				child := b.ch.ID(r.ID)
				b.must(child.Reject(nil))
				b.must(child.Destroy())
			}
		}
		a.turn(10 * time.Millisecond)
		answered = strings.Count(a.all(), "Rejected") + strings.Count(a.all(), "Unreachable")
	}
	if siw && requests > room {
		t.Errorf("%d requests for a backlog of %d: nobody asks again, so that no more can have waited", requests, room)
	}
	t.Logf("%d requests for a backlog of %d; %d clients were refused at once, and all had an answer after %v", requests, room, early, time.Since(begin))
	a.quiet()
	for _, id := range ids {
		if siw {
			a.wantDelivered(id, "AddrResolved RouteResolved Rejected", "AddrResolved RouteResolved Unreachable")
		} else {
			a.wantDelivered(id, "AddrResolved RouteResolved Rejected")
		}
		a.destroy(id)
	}
	switch {
	case siw && (early == 0 || requests < room || requests == clients):
		t.Errorf("%d requests of %d clients, %d of whom were refused before any was fetched", requests, clients, early)
	case !siw && (early != 0 || requests != clients):
		t.Errorf("%d requests of %d clients, %d of whom were refused: InfiniBand drops what has no room, and asks again", requests, clients, early)
	}
	a.must(queue.Close())
}

// Ten thousand identifiers on one channel leave nothing.
func TestFaultTenThousand(t *testing.T) {
	leavesNothing(t)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n = 10_000
	s := newSide(t)
	s.destroy(s.listen("RDMA_ADDR", 0)) // opens the device
	before, had := heap(), kernelHas(t)["cm_id"]
	at := cmid.AddrFrom(addr(t, "RDMA_ADDR"), anyPort)
	ids := make([]*cmid.ID, n)
	steps := map[string]time.Duration{}
	step := func(what string, do func(i int) error) {
		begin := time.Now()
		for i := range ids {
			s.must(do(i))
		}
		steps[what] = time.Since(begin)
	}
	step("create", func(i int) (err error) { ids[i], err = s.ch.CreateID(cmid.PortSpaceTCP); return err })
	step("bind", func(i int) error { return ids[i].BindAddr(at) })
	has := kernelHas(t)["cm_id"]
	// any other device events end, too
	for late := time.Now().Add(faultPatience); has-had != n && time.Now().Before(late); {
		time.Sleep(100 * time.Millisecond)
		has = kernelHas(t)["cm_id"]
	}
	if has-had != n {
		t.Errorf("the kernel has %d identifiers more, want %d", has-had, n)
	}
	during := heap()
	step("destroy", func(i int) error { err := ids[i].Destroy(); ids[i] = nil; return err })
	s.quiet()
	if s.ch.Len() != 0 || s.all() != "" {
		t.Errorf("%d identifiers are left, and delivered was %.200s", s.ch.Len(), s.all())
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	t.Logf("%d identifiers: %v; %d bytes each", n, steps, (during-before)/n)
	s.close()
	// the peers of earlier tests may still be on their way out
	deadline := time.Now().Add(faultPatience)
	for kernelHas(t)["cm_id"] > had && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	if has := kernelHas(t)["cm_id"]; has > had {
		t.Errorf("the kernel still has %d identifiers, and before %d", has, had)
	}
}

// Destroying identifiers that the kernel keeps delays nothing else on the channel: a connect to a
// missing host, and one that its peer does not answer.
func TestFaultHalfOpenIsDestroyed(t *testing.T) {
	leavesNothing(t)
	s, far := newSide(t), newSide(t)
	defer far.close()
	defer s.close()
	l, other := far.listen("RDMA_ADDR", 0), s.listen("RDMA_ADDR", 0)
	a, b := pair(s, s, other)
	half := s.connect(l.LocalAddr())
	asked := far.request()
	begin := time.Now()
	s.must(half.id.Destroy())
	s.talks(a, b)
	s.destroy(pairWith(s, other).id)
	if took := time.Since(begin); took > faultPrompt {
		t.Errorf("destroying a half open identifier has kept the channel for %v", took)
	}
	s.until("the end of destroy_id", func() bool { return s.ch.ID(half.id.Handle()) == nil })
	t.Logf("destroy_id of a connect that is not answered: %v", time.Since(begin))
	if err := asked.id.Accept(nil, nil); err == nil && env(t, "RDMA_KIND") == "rxe" {
		t.Error("its request could be accepted afterwards")
	}
}

// pairWith makes one more connection, and returns its active end.
func pairWith(s *side, l *cmid.ID) *conn {
	c, _ := pair(s, s, l)
	return c
}

// What does not fit into a message is refused before anything is sent, where that is the caller's
// to repeat.
func TestFaultPrivateDataTooLong(t *testing.T) {
	leavesNothing(t)
	s := newSide(t)
	defer s.close()
	l := s.listen("RDMA_ADDR", 0)
	c := s.queues(s.resolved(l.LocalAddr()))
	lim := c.id.Limits()
	// over the transport's limit, the command's, a length's
	for _, more := range []int{1, 300 - lim.ConnectData, 70_000} {
		err := c.id.Connect(make([]byte, lim.ConnectData+more), nil)
		wantErrno(t, err, unix.EINVAL, "the limit is")
	}
	s.must(c.id.Connect(make([]byte, lim.ConnectData), nil))
	p := s.request()
	wantErrno(t, p.id.Reject(make([]byte, lim.RejectData+1)), unix.EINVAL, "the limit is")
	s.quiet()
	s.wantDelivered(c.id, "AddrResolved RouteResolved")
	s.destroy(p.id)
	await[*cmid.Rejected](s, c.id)
}
