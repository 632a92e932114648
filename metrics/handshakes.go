package metrics

import rdma "github.com/rdmactor/rdmactor/actor"

// No label is an identity: there are as many identities as keys or certificates, and a
// certificate's requester chooses its names. Inspect and the log report identities.

type handshakesOf = *rdma.Handshakes

// perHandshakes are the handshakes of secured connections, by the side that dialled.
var perHandshakes = func() (g group[handshakesOf]) {
	add := func(name, help string, value func(handshakesOf) uint64) {
		g.addMetric(Definition{"handshake", name, Counter, None, []string{"loop", "side"}, help}, func(h handshakesOf) float64 { return float64(value(h)) })
	}
	add("begun", "Handshakes of secured connections that have begun; side is client where this program has dialled.", func(h handshakesOf) uint64 { return h.Begun })
	add("completed", "Handshakes whose peer is authenticated, and here also authorized.", func(h handshakesOf) uint64 { return h.Completed })
	return g
}()

// perFailure is the number of handshakes that failed for one reason.
var perFailure = func() (g group[uint64]) {
	g.addMetric(Definition{"handshake", "failed", Counter, None, []string{"loop", "side", "reason"}, "Handshakes that have failed, by reason."}, func(n uint64) float64 { return float64(n) })
	return g
}()

type securityOf = *rdma.SecurityTotals

// perSecurity are the metrics of a loop's secured connections.
var perSecurity = func() (g group[securityOf]) {
	add := func(kind Kind, name, help string, value func(securityOf) float64) {
		g.addMetric(Definition{"secured", name, kind, None, []string{"loop"}, help}, value)
	}
	add(Gauge, "connections", "Connections that are secured now. Their records are the messages: see rdmactor_connection_sent_messages_total.", func(s securityOf) float64 { return float64(s.Secured) })
	add(Counter, "key_updates", "Times that this side has changed its key within a connection.", func(s securityOf) float64 { return float64(s.KeyUpdates) })
	add(Counter, "peer_key_updates", "Times that peers have changed theirs.", func(s securityOf) float64 { return float64(s.PeerKeyUpdates) })
	add(Counter, "tampered_connections", "Connections that have ended because a message did not open.", func(s securityOf) float64 { return float64(s.Tampered) })
	add(Counter, "overused_connections", "Connections that have ended because a key was used for as much as is safe.", func(s securityOf) float64 { return float64(s.Overused) })
	return g
}()

// securitySamples adds the samples of a loop.
func securitySamples(all []Sample, s securityOf, loop string) []Sample {
	all = perSecurity.appendSamples(all, s, loop)
	for _, by := range []struct {
		side string
		h    handshakesOf
	}{{"client", &s.Dialled}, {"server", &s.Answered}} {
		all = perHandshakes.appendSamples(all, by.h, loop, by.side)
		for f, n := range by.h.Failed {
			all = perFailure.appendSamples(all, n, loop, by.side, rdma.HandshakeFailure(f).String())
		}
	}
	return all
}
