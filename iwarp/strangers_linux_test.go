package iwarp

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// TestStrangers: a peer that connects and sends no Request is counted on the loop that accepted it.
// At most one a minute is logged for all loops of the device.
func TestStrangers(t *testing.T) {
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, nil))
	d := New(Config{MaxSetups: 1, RequestTimeout: 100 * time.Millisecond})
	one, two := newNodeLogging(t, d, to), newNodeLogging(t, d, to)
	_, at := one.listen("127.0.0.1:0")
	_, other := two.listen("127.0.0.1:0")
	come := func(n *node, at cmid.Addr, text string, end bool) string {
		t.Helper()
		r := rawDial(t, at)
		sa, err := n.in.sys.Local(r.fd)
		if err != nil {
			t.Fatal(err)
		}
		from := addrOf(sa).String()
		r.write([]byte(text))
		if end {
			r.close()
		}
		have := n.in.Strangers()
		turns(t, "the stranger is counted", func() bool { return n.in.Strangers() > have }, n)
		turns(t, "its socket's end", func() bool { return n.in.conns == 0 }, n)
		return from
	}
	says := func(n *node, from string, want ...string) {
		t.Helper()
		turns(t, "a line in the log", func() bool { return log.Len() > 0 }, n)
		line := log.String()
		for _, w := range append(want, "level=INFO", "device=iwarp0", "peer="+from, "local=127.0.0.1:") {
			if !strings.Contains(line, w) {
				t.Errorf("the log does not say %s: %s", w, line)
			}
		}
		if len(line) > 600 || strings.Count(line, "\n") != 1 {
			t.Errorf("%d bytes in the log, want one line: %s", len(line), line)
		}
		log.Reset()
	}
	from := come(one, at, "GET / HTTP/1.1\r\nHost: example.org\r\n"+strings.Repeat("x", 1000), false)
	says(one, from, `GET / HTTP/1.1`, `Host\" (HTTP)`, `unlogged=0`)

	come(one, at, "\x16\x03\x01\x02\x00", false) // TLS
	come(two, other, "SSH-2.0-OpenSSH_9.2p1\r\n", false)
	come(one, at, "", true)            // a health check
	come(two, other, "MPA ID R", true) // an end in the middle of a Request
	come(two, other, "", false)        // silence
	for _, n := range []*node{one, two} {
		if err := n.loop.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("a second line within a minute: %s", &log)
	}
	if n, m := one.in.Strangers(), two.in.Strangers(); n != 3 || m != 3 {
		t.Errorf("%d and %d strangers, want 3 and 3", n, m)
	}
	d.strangers.next = time.Time{}
	from = come(two, other, "\x00\x1b[2J\n", false)
	says(two, from, `x1b[2J`, `unlogged=5`)
	if strings.ContainsRune(log.String(), 0x1b) {
		t.Error("a stranger's bytes are in the log as they came")
	}
}

// TestStrangersAreNotPeers: a peer that sends a Request is no stranger, whatever happens to the
// Request. Nor is one whose connection ends with its listener. A peer that is closed to make room
// is a stranger.
func TestStrangersAreNotPeers(t *testing.T) {
	n := newNode(t, func(c *Config) { c.MaxSetups, c.RequestTimeout = 1, time.Second })
	lh, at := n.listen("127.0.0.1:0")
	peer := rawDial(t, at)
	peer.write(request("x"))
	n.do(n.wait(lh, states.KindConnectRequest).child, &cmid.Reject{})
	turns(t, "the rejected peer's end", peer.ended, n)
	if got := n.in.Strangers(); got != 0 {
		t.Errorf("%d strangers, but a peer was rejected", got)
	}
	first := rawDial(t, at)
	turns(t, "a set-up", func() bool { return n.in.setups.n == 1 }, n)
	rawDial(t, at)
	turns(t, "the first one makes room", first.ended, n)
	if got := n.in.Strangers(); got != 1 {
		t.Errorf("%d strangers, but one had to make room", got)
	}
	n.do(lh, &cmid.DestroyID{})
	turns(t, "the end of the set-ups", func() bool { return n.in.setups.n == 0 }, n)
	if got := n.in.Strangers(); got != 1 {
		t.Errorf("%d strangers, but the listener has ended", got)
	}
}

// TestStrangersOnceAMinute: the next stranger that is logged reports how many were not.
func TestStrangersOnceAMinute(t *testing.T) {
	var s strangers
	start := time.Now()
	for _, c := range []struct {
		after    time.Duration
		unlogged int
		ok       bool
	}{
		{0, 0, true},
		{time.Second, 0, false},
		{59 * time.Second, 0, false},
		{time.Minute, 2, true},
		{61 * time.Second, 0, false},
		{time.Hour, 1, true},
		{2 * time.Hour, 0, true},
	} {
		if n, ok := s.shouldLog(start.Add(c.after)); n != c.unlogged || ok != c.ok {
			t.Errorf("after %v: %d, %t; want %d, %t", c.after, n, ok, c.unlogged, c.ok)
		}
	}
}
