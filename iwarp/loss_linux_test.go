package iwarp

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// arrivals is how many messages losing sends: more bytes than one read takes while messages wait,
// and fewer than TCP's first window.
const arrivals = 600

// losing is a connection whose messages have all arrived, and whose peer can end it.
type losing struct {
	*scarce
	client *node
	peer   *conn
	child  cmid.Handle
	qp     verbs.QP
}

// newLosing connects, and sends messages for which there is no receive.
func newLosing(t *testing.T, opts ...option) *losing {
	client := newNode(t)
	l := &losing{scarce: newScarce(t, opts...), client: client}
	q, h, qp := l.dial(client)
	for id := range l.in.ids {
		if id != l.lh {
			l.child = id
		}
	}
	l.peer, l.qp = client.in.ids[h].conn, qp
	for i := range arrivals {
		q.send(uint64(i), fmt.Sprintf("%064d", i))
	}
	turns(t, "all messages have arrived, and wait", func() bool {
		return len(client.wcs) == arrivals && client.in.unackedBytes(l.peer.fd) == 0 && l.conn().waits
	}, client, l.node)
	if n, err := unix.IoctlGetInt(l.conn().fd, unix.TIOCINQ); err != nil || n == 0 || l.in.kept == 0 {
		t.Fatalf("%d bytes wait in the socket, %v, and %d behind the first message: want some in both", n, err, l.in.kept)
	}
	return l
}

func (l *losing) conn() *conn { return l.in.ids[l.child].conn }

// reset ends the peer's socket with a reset, and waits until it has arrived.
func (l *losing) reset() {
	l.t.Helper()
	if err := unix.SetsockoptLinger(l.peer.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		l.t.Fatal(err)
	}
	l.peer.close()
	l.cut()
}

// cut waits until this side's TCP connection has ended.
func (l *losing) cut() {
	l.t.Helper()
	const closed = 7
	fd := l.conn().fd
	turns(l.t, "TCP's end", func() bool { return tcpState(l.t, fd) == closed })
}

// say posts a send.
func (l *losing) say(id uint64) {
	l.t.Helper()
	wr := verbs.SendWR{ID: id, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: l.mr, Length: 2}}}
	if err := l.qp.PostSend(&wr); err != nil {
		l.t.Fatal(err)
	}
}

// receives counts the completions of receives, and checks that they have the messages in order.
func (l *losing) receives(have int) int {
	l.t.Helper()
	for ; have < len(l.wcs); have++ {
		wc := l.wcs[have]
		if wc.Op != verbs.Recv {
			l.t.Fatalf("got %+v before the messages", wc)
		}
		if got, want := string(l.mr.Bytes[wc.ID*64:][:wc.Bytes]), fmt.Sprintf("%064d", have); wc.Status != verbs.StatusSuccess || got != want {
			l.t.Fatalf("message %d: %v, %q", have, wc.Status, got)
		}
	}
	return have
}

// drain posts receives, n at a time, until all messages are received, and returns the end.
func (l *losing) drain(n int) delivered {
	l.t.Helper()
	for have := 0; have < arrivals; {
		for range min(n, arrivals-have) {
			l.post()
		}
		want := min(have+n, arrivals)
		turns(l.t, "messages", func() bool {
			if e := l.found(l.child, states.KindDisconnected); e != nil && e.polled < arrivals {
				l.t.Fatalf("the end, %v, came with %d of %d messages", e.err, e.polled, arrivals)
			}
			return len(l.wcs) >= want
		}, l.node)
		if have < want {
			have = l.receives(have)
		}
	}
	return l.wait(l.child, states.KindDisconnected)
}

// idle runs the loop for some turns and checks that the connection does not end.
func (l *losing) idle() {
	l.t.Helper()
	for range 50 {
		if err := l.loop.Turn(); err != nil {
			l.t.Fatal(err)
		}
	}
	if e := l.found(l.child, states.KindDisconnected); e != nil {
		l.t.Fatalf("the end, %v, came before the messages", e.err)
	}
}

// clean checks that nothing is left of the connection.
func (l *losing) clean() {
	l.t.Helper()
	if n := l.srq.(*sharedQueue).waiting.n; n != 0 || l.in.kept != 0 || l.in.conns != 0 {
		l.t.Errorf("%d connections wait and keep %d bytes, of %d", n, l.in.kept, l.in.conns)
	}
}

// Data that arrived before a connection is lost is received, in order, before its end, however late
// there are receives and whatever this side sends until then. The peer's kernel has acknowledged
// these messages, and Linux keeps them. A failed send does not affect them.
func TestMessagesThatArrivedBeforeALoss(t *testing.T) {
	for what, lose := range map[string]func(l *losing){
		"a reset": func(l *losing) {
			l.reset()
			l.idle()
		},
		"a reset that a send finds first": func(l *losing) {
			l.reset()
			l.say(1000)
			l.in.Run(0) // before the loop learns of the reset
			l.idle()
		},
		"sends after a reset": func(l *losing) {
			l.reset()
			l.idle()
			l.say(1000)
			l.idle()
			l.say(1001)
			l.idle()
		},
		"a reset, and a pause": func(l *losing) {
			l.qp.(verbs.Pauser).Pause(true)
			l.reset()
			l.idle()
			l.qp.(verbs.Pauser).Pause(false)
			l.idle()
		},
	} {
		for _, n := range []int{1, 7, arrivals} {
			t.Run(fmt.Sprintf("%s, %d receives at a time", what, n), func(t *testing.T) {
				l := newLosing(t)
				lose(l)
				if e := l.drain(n); !errors.Is(e.err, unix.ECONNRESET) {
					t.Errorf("the end is %v, want ECONNRESET", e.err)
				}
				for _, wc := range l.wcs[arrivals:] {
					if wc.Status != verbs.StatusFlushed || wc.ID < 1000 {
						t.Errorf("got %+v behind the messages, want the sends flushed", wc)
					}
				}
				l.clean()
			})
		}
	}
}

// A peer that has sent everything and has closed does not accept data: its kernel answers with a
// reset. All messages are received nevertheless, and then the orderly end.
func TestMessagesThatArrivedBeforeAClose(t *testing.T) {
	l := newLosing(t)
	l.peer.close()
	l.say(1000)
	turns(t, "the send is out", func() bool { return len(l.wcs) == 1 }, l.node)
	l.wcs = nil
	l.cut()
	l.idle()
	l.say(1001)
	l.idle()
	if e := l.drain(7); e.err != nil {
		t.Errorf("the end is %v, want an orderly one", e.err)
	}
	l.clean()
}

// When a send fails, more may have arrived than one turn of the loop reads. The rest is read in
// later turns.
func TestManyMessagesThatArrivedBeforeAFailedSend(t *testing.T) {
	const messages = 2 * turnMessages
	client, s := newNode(t), newScarce(t)
	q, h, qp := s.dial(client)
	var refill func()
	refill = func() {
		for range 16 {
			s.post()
		}
		s.onEmpty = refill
	}
	refill()
	c := client.in.ids[h].conn
	for n := range messages {
		turns(t, "room to send", func() bool { return n-len(client.wcs) < 512 }, client)
		q.send(0, "x")
	}
	turns(t, "all messages have arrived", func() bool { return len(client.wcs) == messages && client.in.unackedBytes(c.fd) == 0 }, client)
	if err := unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		t.Fatal(err)
	}
	c.close()
	if err := qp.PostSend(&verbs.SendWR{SGL: []verbs.SGE{{MR: s.mr, Length: 2}}}); err != nil {
		t.Fatal(err)
	}
	s.in.Run(0)
	turns(t, "the end", func() bool { return s.in.conns == 0 }, s.node)
	received := 0
	for _, wc := range s.wcs {
		if wc.Op == verbs.Recv && wc.Status == verbs.StatusSuccess {
			received++
		}
	}
	if received != messages {
		t.Errorf("%d of %d messages were received", received, messages)
	}
}

// A lost connection does not keep the loop busy while its messages wait.
func TestLostConnectionSleeps(t *testing.T) {
	l := newLosing(t)
	c := l.conn()
	l.reset()
	l.idle()
	fd, err := l.loop.FD()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.idle()
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n != 0 || err != nil {
			t.Fatalf("the loop is awake: %d, %v", n, err)
		}
		l.say(1000)
	}
	if c.dirty {
		t.Error("it is to be written to")
	}
}

// The messages of a lost connection wait for UserTimeout, from the last one that was received.
func TestLostConnectionIsGivenUp(t *testing.T) {
	t.Run("in time", func(t *testing.T) {
		l := newLosing(t, func(c *Config) { c.UserTimeout = time.Second })
		l.say(1000)
		turns(t, "the send is out", func() bool { return len(l.wcs) == 1 }, l.node)
		l.wcs = nil
		l.reset()
		l.say(1001)
		if e := l.wait(l.child, states.KindDisconnected); !errors.Is(e.err, unix.ECONNRESET) || e.polled != 1 {
			t.Errorf("got %v behind %d completions, want ECONNRESET behind the flushed send", e.err, e.polled)
		}
		l.clean()
	})
	t.Run("the time begins anew", func(t *testing.T) {
		l := newLosing(t)
		l.reset()
		l.idle()
		before := l.conn().loss.until
		for i := range 3 {
			l.post()
			turns(t, "a message", func() bool { return len(l.wcs) == i+1 }, l.node)
			now := l.conn().loss.until
			if !now.After(before) {
				t.Errorf("it waits until %v, as before a message was received", now)
			}
			before = now
		}
	})
}

// The owner can end a lost connection whose messages wait.
func TestEndOfALostConnection(t *testing.T) {
	for _, sends := range []bool{false, true} {
		t.Run(fmt.Sprint("disconnect, sends: ", sends), func(t *testing.T) {
			l := newLosing(t)
			l.reset()
			l.idle()
			if sends {
				l.say(1000)
			}
			l.do(l.child, &cmid.Disconnect{})
			if e := l.wait(l.child, states.KindDisconnected); !errors.Is(e.err, unix.ECONNRESET) {
				t.Errorf("got %v, want ECONNRESET", e.err)
			}
			l.clean()
		})
		t.Run(fmt.Sprint("destroy, sends: ", sends), func(t *testing.T) {
			l := newLosing(t)
			l.reset()
			l.idle()
			if sends {
				l.say(1000)
			}
			l.do(l.child, &cmid.DestroyID{})
			l.clean()
		})
	}
	t.Run("the queue pair is destroyed", func(t *testing.T) {
		l := newLosing(t)
		l.reset()
		l.idle()
		if err := l.qp.Destroy(); err != nil {
			t.Fatal(err)
		}
		l.wait(l.child, states.KindDisconnected)
		l.clean()
	})
}
