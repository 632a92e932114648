package iwarp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// scarce is a node whose shared receive queue contains only the receives that a test posts.
type scarce struct {
	*node
	lh     cmid.Handle
	at     cmid.Addr
	mr     *verbs.MR
	srq    verbs.SRQ
	asked  int
	posted int

	onEmpty func() // called once
}

func newScarce(t *testing.T, opts ...option) *scarce {
	s := &scarce{node: newNode(t, opts...)}
	var err error
	if s.mr, err = s.in.dev.Alloc(64<<10, verbs.LocalWrite); err != nil {
		t.Fatal(err)
	}
	if s.srq, err = s.in.dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1024, OnEmpty: s.empty}); err != nil {
		t.Fatal(err)
	}
	s.lh, s.at = s.listen("127.0.0.1:0")
	return s
}

func (s *scarce) empty(verbs.QP) {
	s.asked++
	if fn := s.onEmpty; fn != nil {
		s.onEmpty = nil
		fn()
	}
}

// post posts a receive of 64 bytes; a later one may be in the same memory.
func (s *scarce) post() {
	s.t.Helper()
	i := s.posted % 1024
	s.posted++
	if err := s.srq.PostRecv(verbs.RecvWR{ID: uint64(i), SGE: verbs.SGE{MR: s.mr, Offset: uint32(i * 64), Length: 64}}); err != nil {
		s.t.Fatal(err)
	}
}

// dial connects client, and returns its queue pair and the one here.
func (s *scarce) dial(client *node) (*testQP, cmid.Handle, verbs.QP) {
	s.t.Helper()
	h := client.resolve(s.at)
	cq := client.qp(h, 0)
	client.do(h, &cmid.Connect{})
	before := len(s.events)
	child := s.wait(s.lh, states.KindConnectRequest, client).child
	s.events = s.events[:before]
	attr := qpAttr(s.node)
	attr.SRQ = s.srq
	qp, err := s.in.ids[child].CreateQP(attr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.do(child, &cmid.Accept{})
	client.wait(h, states.KindEstablished, s.node)
	s.wait(child, states.KindEstablished, client)
	return cq, h, qp
}

func (s *scarce) texts() (all []string) {
	for _, wc := range s.wcs {
		all = append(all, string(s.mr.Bytes[wc.ID*64:][:wc.Bytes]))
	}
	return all
}

// A message that finds no receive waits at its sender while the loop sleeps. Waiting messages go
// on, in order, when there are receives.
func TestMessagesWaitForReceives(t *testing.T) {
	client, s := newNode(t), newScarce(t)
	a, _, _ := s.dial(client)
	b, _, _ := s.dial(client)
	for i := range 8 {
		a.send(uint64(i), fmt.Sprint("a", i))
		b.send(uint64(i), fmt.Sprint("b", i))
	}
	turns(t, "both wait", func() bool { return s.srq.(*sharedQueue).waiting.n == 2 }, client, s.node)
	asked := s.asked
	for range 100 {
		if err := s.loop.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	if s.asked != asked || s.asked > 4 {
		t.Errorf("asked %d times for receives that two messages wait for", s.asked)
	}
	if s.in.kept == 0 {
		t.Error("what was read behind the messages that wait is not counted")
	}
	for n := range 16 {
		s.post()
		turns(t, "a message", func() bool { return len(s.wcs) == n+1 }, client, s.node)
	}
	next := map[byte]byte{'a': '0', 'b': '0'}
	last := byte(0)
	for _, m := range s.texts() {
		if m[1] != next[m[0]] || m[0] == last && m[1] < '7' {
			t.Fatalf("messages were received as %v: want each connection's in order, and turn by turn", s.texts())
		}
		next[m[0]]++
		last = m[0]
	}
	if s.in.kept != 0 {
		t.Errorf("%d bytes are counted as kept when nothing is", s.in.kept)
	}
}

// The bytes that connections read in excess of their receives are limited for all of them together.
func TestWhatIsKeptIsBounded(t *testing.T) {
	client, s := newNode(t), newScarce(t)
	const conns = 24
	for range conns {
		q, _, _ := s.dial(client)
		for i := range 32 {
			q.send(uint64(i), string(bytes.Repeat([]byte("x"), 4000)))
		}
	}
	turns(t, "all wait", func() bool { return s.srq.(*sharedQueue).waiting.n == conns }, client, s.node)
	if most := keptMax + conns*2*peekLen; s.in.kept > most {
		t.Errorf("%d connections have read %d bytes that nobody can receive, want %d at most", conns, s.in.kept, most)
	}
}

// A connection that waits for a receive can be ended by anything, and leaves nothing behind.
func TestEndOfAConnectionThatWaits(t *testing.T) {
	begin := func(t *testing.T) (client *node, s *scarce, h, child cmid.Handle, qp verbs.QP) {
		client, s = newNode(t), newScarce(t)
		q, h, qp := s.dial(client)
		for id := range s.in.ids {
			if id != s.lh {
				child = id
			}
		}
		q.send(0, "nobody takes it")
		turns(t, "it waits", func() bool { return s.srq.(*sharedQueue).waiting.n == 1 }, client, s.node)
		return client, s, h, child, qp
	}
	clean := func(s *scarce) {
		t.Helper()
		if n := s.srq.(*sharedQueue).waiting.n; n != 0 || s.in.kept != 0 {
			t.Errorf("%d connections wait and keep %d bytes", n, s.in.kept)
		}
	}
	t.Run("we disconnect", func(t *testing.T) {
		client, s, h, child, _ := begin(t)
		s.do(child, &cmid.Disconnect{})
		s.wait(child, states.KindDisconnected, client)
		client.wait(h, states.KindDisconnected, s.node)
		clean(s)
	})
	t.Run("we destroy", func(t *testing.T) {
		client, s, h, child, _ := begin(t)
		s.do(child, &cmid.DestroyID{})
		client.wait(h, states.KindDisconnected, s.node)
		clean(s)
	})
	t.Run("the peer disconnects, and there is a receive later", func(t *testing.T) {
		client, s, h, child, _ := begin(t)
		client.do(h, &cmid.Disconnect{})
		for range 100 {
			if err := s.loop.Turn(); err != nil {
				t.Fatal(err)
			}
		}
		if e := s.found(child, states.KindDisconnected); e != nil {
			t.Fatalf("the end has overtaken a message: %v", e)
		}
		s.post()
		if e := s.wait(child, states.KindDisconnected, client); e.err != nil || e.polled != 1 {
			t.Errorf("got %v behind %d messages", e.err, e.polled)
		}
		clean(s)
	})
}

// If an application panics when it is asked for a receive, the message waits as if it had posted
// none, and what was read behind the message is not lost.
func TestPanicWhenAsked(t *testing.T) {
	client, s := newNode(t), newScarce(t)
	q, _, _ := s.dial(client)
	other, _, _ := s.dial(client)
	turned := func() bool {
		_ = s.loop.Turn()
		return s.onEmpty == nil
	}
	leave := func() { panic("no receive") }
	s.onEmpty = leave
	q.send(0, "a0")
	q.send(1, "a1")
	turns(t, "it is asked", turned, client)
	other.send(0, "b0")
	turns(t, "both wait", func() bool { return s.srq.(*sharedQueue).waiting.n == 2 }, client, s.node)
	s.post()
	s.onEmpty = leave
	turns(t, "it is asked again", turned, client)
	for range 2 {
		s.post()
	}
	turns(t, "all messages", func() bool { return len(s.wcs) == 3 }, client, s.node)
	if got := fmt.Sprint(s.texts()); got != "[a0 b0 a1]" {
		t.Errorf("received %v", got)
	}
	if n := s.srq.(*sharedQueue).waiting.n; n != 0 || s.in.kept != 0 {
		t.Errorf("%d connections wait and keep %d bytes", n, s.in.kept)
	}
}

// Nor does it delay what the connection has to send: here the response to a Read that came before
// the message.
func TestOutputIfAskingPanics(t *testing.T) {
	client, s := newNode(t), newScarce(t)
	q, _, qp := s.dial(client)
	back := client.alloc(64, verbs.LocalWrite)
	from, err := s.in.dev.Alloc(64, verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	c := qp.(*queuePair).conn
	pending := false
	s.onEmpty = func() {
		pending = c.core.Pending()
		panic("no receive")
	}
	q.post(verbs.SendWR{Op: verbs.Read, SGL: whole(back), RemoteAddr: from.Addr, RKey: from.RKey})
	q.send(1, "it waits")
	turns(t, "it is asked", func() bool { return s.onEmpty == nil }, client, s.node)
	for range 10 {
		if err := s.loop.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	if !pending || c.core.Pending() {
		t.Errorf("output was pending: %t, and still is: %t", pending, c.core.Pending())
	}
}

// Between two messages that one read has brought, an application may do anything: end the
// connection, or end another one, whose output or input then uses the same memory.
func TestEndWhenAsked(t *testing.T) {
	for what, end := range map[string]func(s *scarce, child cmid.Handle, qp verbs.QP){
		"disconnect": func(s *scarce, child cmid.Handle, _ verbs.QP) { s.do(child, &cmid.Disconnect{}) },
		"destroy":    func(s *scarce, child cmid.Handle, _ verbs.QP) { s.do(child, &cmid.DestroyID{}) },
		"queue pair": func(s *scarce, _ cmid.Handle, qp verbs.QP) { _ = qp.Destroy() },
	} {
		t.Run(what, func(t *testing.T) {
			client, s := newNode(t), newScarce(t)
			q, h, qp := s.dial(client)
			var child cmid.Handle
			for id := range s.in.ids {
				if id != s.lh {
					child = id
				}
			}
			other, _, _ := s.dial(client)
			s.onEmpty = func() { end(s, child, qp) }
			q.send(0, "a0")
			q.send(1, "a1")
			turns(t, "it is asked", func() bool { return s.onEmpty == nil }, client, s.node)
			client.wait(h, states.KindDisconnected, s.node)
			s.post()
			other.send(0, "b0")
			turns(t, "the other's message", func() bool { return slices.Contains(s.texts(), "b0") }, client, s.node)
			if n := s.srq.(*sharedQueue).waiting.n; n != 0 || s.in.kept != 0 {
				t.Errorf("%d connections wait and keep %d bytes", n, s.in.kept)
			}
		})
	}
}

// A connection that cannot be written to is read in a turn of its own. So output never asks an
// application for anything, and delays nobody's output.
func TestFailedWriteAsksForNothing(t *testing.T) {
	client, s := newNode(t), newScarce(t)
	a, h, qa := s.dial(client)
	b, _, qb := s.dial(client)
	b.recv(0)
	a.send(0, "a0")
	c := client.in.ids[h].conn
	went := c.went
	turns(t, "a0 is out", func() bool { return c.went > went }, client)
	if err := unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		t.Fatal(err)
	}
	c.close()
	for _, q := range []verbs.QP{qa, qb} {
		if err := q.PostSend(&verbs.SendWR{SGL: []verbs.SGE{{MR: s.mr, Length: 2}}}); err != nil {
			t.Fatal(err)
		}
	}
	s.in.Run(0)
	if s.asked != 0 {
		t.Errorf("asked for %d receives by writing", s.asked)
	}
	turns(t, "the other's message", func() bool {
		for _, wc := range client.wcs {
			if wc.Op == verbs.Recv && wc.Status == verbs.StatusSuccess {
				return true
			}
		}
		return false
	}, client, s.node)
	s.post()
	turns(t, "what had arrived", func() bool { return slices.Contains(s.texts(), "a0") }, client, s.node)
}

// Completions are notified before the owner is asked, so that it can post what they release.
func TestCompletionsBeforeTheQuestion(t *testing.T) {
	client, s := newNode(t), newScarce(t)
	q, _, _ := s.dial(client)
	s.post()
	var before []int
	var ask func()
	ask = func() {
		before = append(before, len(s.wcs))
		s.post()
		s.onEmpty = ask
	}
	s.onEmpty = ask
	for i := range 4 {
		q.send(uint64(i), fmt.Sprint("a", i))
	}
	turns(t, "all messages", func() bool { return len(s.wcs) == 4 }, client, s.node)
	if !slices.Equal(before, []int{1, 2, 3}) {
		t.Errorf("asked behind %v messages, want 1, 2 and 3", before)
	}
}

// A paused connection takes no receives from others and does not keep its loop busy.
func TestPausedConnection(t *testing.T) {
	client, s := newNode(t), newScarce(t)
	a, _, qa := s.dial(client)
	b, _, _ := s.dial(client)
	qa.(verbs.Pauser).Pause(true)
	a.send(0, "a0")
	turns(t, "it waits", func() bool { return qa.(*queuePair).conn.waits }, client, s.node)
	for range 3 {
		s.post()
	}
	b.send(0, "b0")
	b.send(1, "b1")
	turns(t, "the other's", func() bool { return len(s.wcs) == 2 }, client, s.node)
	qa.(verbs.Pauser).Pause(false)
	turns(t, "its own", func() bool { return len(s.wcs) == 3 }, client, s.node)
	if got := fmt.Sprint(s.texts()); got != "[b0 b1 a0]" {
		t.Errorf("received %v", got)
	}
}

// A queue whose owner is not asked has no turns: each message takes a receive, or ends its
// connection.
func TestPausedWithoutQuestions(t *testing.T) {
	client, s := newNode(t), newScarce(t)
	s.srq.(*sharedQueue).attr.OnEmpty = nil
	a, ha, qa := s.dial(client)
	b, hb, _ := s.dial(client)
	pause := func() {
		qa.(verbs.Pauser).Pause(true)
		a.send(0, "a")
		turns(t, "it waits", func() bool { return qa.(*queuePair).conn.waits }, client, s.node)
	}
	pause()
	s.post()
	s.post()
	b.send(0, "b")
	c := client.in.ids[hb].conn
	went := c.went
	turns(t, "b is out", func() bool { return c.went > went }, client)
	qa.(verbs.Pauser).Pause(false) // in the turn that reads b
	turns(t, "both messages", func() bool { return len(s.wcs) == 2 }, client, s.node)
	pause()
	b.send(1, "b")
	client.wait(hb, states.KindDisconnected, s.node)
	qa.(verbs.Pauser).Pause(false)
	client.wait(ha, states.KindDisconnected, s.node)
}

// A receive that contains several messages counts as so many in a turn: a peer that puts its
// messages into few Sends is read no longer than one that does not.
func TestContainedMessagesCountInATurn(t *testing.T) {
	received := func(contained int) int {
		const messages = turnMessages
		client, s := newNode(t), newScarce(t)
		q, h, qp := s.dial(client)
		told := 0
		var refill func()
		refill = func() {
			for ; told < len(s.wcs); told++ {
				qp.(verbs.Pauser).Contained(contained)
			}
			for range 16 {
				s.post()
			}
			s.onEmpty = refill
		}
		refill()
		c := client.in.ids[h].conn
		for n := range messages {
			turns(t, "room to send", func() bool { return n-len(client.wcs) < 512 }, client)
			q.send(0, strings.Repeat("x", 60))
		}
		turns(t, "all messages have arrived", func() bool { return len(client.wcs) == messages && client.in.unackedBytes(c.fd) == 0 }, client)
		turns(t, "some messages", func() bool { return len(s.wcs) > 0 }, s.node)
		n := len(s.wcs)
		turns(t, "all messages", func() bool { return len(s.wcs) == messages }, s.node)
		return n
	}
	if one, many := received(1), received(64); one < 2*many {
		t.Errorf("a turn has read %d receives with one message each, and %d with 64 each", one, many)
	}
}
