package metrics

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/remoting"
)

// hostile are names that a peer might choose.
var hostile = []string{
	"", "all", "other", "with \"quotes\" and \\", "a\nb", "a\x00b", "\xff\xfe", "\xff\xfd", "ok", strings.Repeat("long", 512),
	strings.Repeat("long", 511) + "lang", strings.Repeat("ü", 1024), strings.Repeat("\xff", 2048), "a\ufffdb", "{x=\"1\"} 2\n# HELP",
}

// Labels are bounded and valid, and differ as the texts do.
func TestLabels(t *testing.T) {
	seen := map[string]string{labelAll: "ours", labelOther: "ours"}
	for _, text := range hostile {
		l := label(text)
		if before, twice := seen[l]; twice {
			t.Errorf("%q and %q both become %q", before, text, l)
		}
		seen[l] = text
		if !utf8.ValidString(l) || len(l) > maxLabel || strings.ContainsAny(l, "\n\x00") {
			t.Errorf("%q becomes %q", text, l)
		}
	}
	if label("10.0.0.1:7000") != "10.0.0.1:7000" {
		t.Error("a plain name is changed")
	}
}

func FuzzLabel(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if l := label(text); !utf8.ValidString(l) || len(l) > maxLabel || l == labelAll || l == labelOther {
			t.Errorf("%q becomes %q", text, l)
		}
	})
}

func peersOf(sent map[string]uint64, names ...string) (peers []remoting.PeerInfo) {
	for _, name := range names {
		peers = append(peers, remoting.PeerInfo{Peer: remoting.Peer{Name: name}, Connected: true, Counts: remoting.Counts{Sent: sent[name]}})
	}
	return peers
}

// Peers are summed unless labels are asked for, and those are bounded.
func TestPeers(t *testing.T) {
	const sent = "rdmactor_peer_sent_messages_total"
	counts := map[string]uint64{"a": 1, "b": 2, "c": 4}
	summed := newTally(0).samples(peersOf(counts, "a", "b", "c"))
	want(t, summed, 7, sent, "all")
	want(t, summed, 3, "rdmactor_peer_connected", "all")
	if _, ok := value(summed, sent, "a"); ok {
		t.Error("a peer has a label of its own")
	}
	some := newTally(2)
	got := some.samples(peersOf(counts, "a", "b", "c"))
	want(t, got, 1, sent, "a")
	want(t, got, 2, sent, "b")
	want(t, got, 4, sent, "other")

	got = some.samples(peersOf(counts, "b", "c")) // a has gone
	want(t, got, 5, sent, "other")
	if _, ok := value(got, sent, "a"); ok {
		t.Error("a peer that has gone has its label")
	}
	counts["a"] = 10
	got = some.samples(peersOf(counts, "b", "c", "a")) // and is back
	want(t, got, 10, sent, "a")
	want(t, got, 5, sent, "other")
	counts["b"] = 1 // it was gone in between
	got = some.samples(peersOf(counts, "b", "c", "a"))
	want(t, got, 3, sent, "b")
	if len(some.last) != 3 || some.named != 2 {
		t.Errorf("%d peers, %d labels", len(some.last), some.named)
	}
}

// Peers that come and go leave nothing behind but their sum.
func TestManyPeers(t *testing.T) {
	const sent = "rdmactor_peer_sent_messages_total"
	some, sum := newTally(3), newTally(0)
	for i := range 1000 {
		name := strconv.Itoa(i) + strings.Repeat("\xff", i)
		peers := peersOf(map[string]uint64{name: 1}, name)
		some.samples(peers)
		sum.samples(peers)
	}
	want(t, sum.samples(nil), 1000, sent, "all")
	want(t, some.samples(nil), 1000, sent, "other")
	if len(some.last)+len(some.past)+some.named != 1 {
		t.Errorf("%d peers, %d sums, %d labels", len(some.last), len(some.past), some.named)
	}
}

// Listeners beyond the bound are summed.
func TestManyListeners(t *testing.T) {
	loop := rdma.LoopInfo{}
	for i := range 10 {
		loop.Listeners = append(loop.Listeners, rdma.ListenerTotals{
			Local: cmid.MustAddr("127.0.0.1:" + strconv.Itoa(i+1)), ListenerInfo: rdma.ListenerInfo{Requests: 1, Refused: rdma.Refused{Memory: 1}},
		})
	}
	s := New(Config{Listeners: 4})
	got := s.listenerSamples(nil, []rdma.LoopInfo{loop, loop})
	want(t, got, 12, "rdmactor_listener_requests_total", "other")
	want(t, got, 2, "rdmactor_listener_requests_total", "127.0.0.1:1")
	want(t, got, 12, "rdmactor_listener_refused_total", "other", "memory")
}
