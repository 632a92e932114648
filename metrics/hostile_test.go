package metrics

import (
	"math/rand/v2"
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
		l := makeLabel(text)
		if before, twice := seen[l]; twice {
			t.Errorf("%q and %q both become %q", before, text, l)
		}
		seen[l] = text
		if !utf8.ValidString(l) || len(l) > maxLabel || strings.ContainsAny(l, "\n\x00") {
			t.Errorf("%q becomes %q", text, l)
		}
	}
	if makeLabel("10.0.0.1:7000") != "10.0.0.1:7000" {
		t.Error("a plain name is changed")
	}
}

func FuzzLabel(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if l := makeLabel(text); !utf8.ValidString(l) || len(l) > maxLabel || l == labelAll || l == labelOther {
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
	var none remoting.Counts
	counts := map[string]uint64{"a": 1, "b": 2, "c": 4}
	summed := New(Config{}).peerSamples(peersOf(counts, "a", "b", "c"), remoting.Counts{Sent: 10})
	want(t, summed, 17, sent, "all")
	want(t, summed, 3, "rdmactor_peer_connected", "all")
	if _, ok := value(summed, sent, "a"); ok {
		t.Error("a peer has a label of its own")
	}
	some := New(Config{Peers: 2})
	got := some.peerSamples(peersOf(counts, "a", "b", "c"), none)
	want(t, got, 1, sent, "a")
	want(t, got, 2, sent, "b")
	want(t, got, 4, sent, "other")

	gone := remoting.Counts{Sent: 5} // a has gone, after 4 more messages
	got = some.peerSamples(peersOf(counts, "b", "c"), gone)
	want(t, got, 9, sent, "other") // c stays there although a label is free again
	if _, ok := value(got, sent, "a"); ok {
		t.Error("a peer that has gone has its label")
	}
	counts["a"] = 10
	got = some.peerSamples(peersOf(counts, "b", "c", "a"), gone) // a returns
	want(t, got, 10, sent, "a")
	want(t, got, 9, sent, "other")
	if len(some.peers.given) != 3 {
		t.Errorf("%d peers", len(some.peers.given))
	}
}

// A peer whose name equals another one's label gets no label.
func TestStolenLabel(t *testing.T) {
	const sent = "rdmactor_peer_sent_messages_total"
	first := "a\n"
	counts := map[string]uint64{first: 1, makeLabel(first): 2}
	s := New(Config{Peers: 2})
	got := s.peerSamples(peersOf(counts, first, makeLabel(first)), remoting.Counts{})
	want(t, got, 1, sent, makeLabel(first))
	want(t, got, 2, sent, "other")
}

// A peer whose name is unknown gets no label, and takes none from others.
func TestUnnamedPeer(t *testing.T) {
	const known = "rdmactor_peer_known"
	s := New(Config{Peers: 1})
	got := s.peerSamples(peersOf(nil, "", ""), remoting.Counts{})
	want(t, got, 2, known, "other")
	got = s.peerSamples(peersOf(nil, "", "a"), remoting.Counts{})
	want(t, got, 1, known, "a")
	want(t, got, 1, known, "other")
}

// Peers that come and go leave nothing behind.
func TestManyPeers(t *testing.T) {
	some := New(Config{Peers: 3})
	for i := range 1000 {
		name := strconv.Itoa(i) + strings.Repeat("\xff", i)
		some.peerSamples(peersOf(map[string]uint64{name: 1}, name), remoting.Counts{})
	}
	if len(some.peers.given) != 1 {
		t.Errorf("%d peers", len(some.peers.given))
	}
}

// Listeners beyond the bound are summed, and so are ended ones. Whatever order a loop lists them
// in, no counter goes down.
func TestManyListeners(t *testing.T) {
	const requests, most, count = "rdmactor_listener_requests_total", 4, 10
	loop := rdma.LoopInfo{}
	for i := range count {
		loop.Listeners = append(loop.Listeners, rdma.ListenerTotals{
			ID: rdma.Handle(i + 1), Local: cmid.MustAddr("127.0.0.1:" + strconv.Itoa(max(i, 1))),
			ListenerInfo: rdma.ListenerInfo{Requests: 1, Refused: rdma.Refused{Memory: 1}},
		})
	}
	s := New(Config{Listeners: most})
	got := s.listenerSamples(nil, []rdma.LoopInfo{loop})
	want(t, got, count-most, requests, "other") // including the second one at port 1
	want(t, got, 1, requests, "127.0.0.1:1")
	want(t, got, count-most, "rdmactor_listener_refused_total", "other", "memory")
	before := got
	for range 100 {
		rand.Shuffle(count, func(i, j int) {
			loop.Listeners[i], loop.Listeners[j] = loop.Listeners[j], loop.Listeners[i]
		})
		got = s.listenerSamples(nil, []rdma.LoopInfo{loop})
		grown(t, before, got)
	}
	loop.EndedListeners = loop.Listeners[0].ListenerInfo
	loop.Listeners = loop.Listeners[1:]
	grown(t, before, s.listenerSamples(nil, []rdma.LoopInfo{loop}))
}

// grown checks that no counter is less than it was.
func grown(t *testing.T, before, now []Sample) {
	t.Helper()
	for _, s := range before {
		if v, ok := value(now, s.Name(), s.Values...); ok && s.Kind == Counter && v < s.Value {
			t.Errorf("%s%q = %v, and %v before", s.Name(), s.Values, v, s.Value)
		}
	}
}
