package metrics

import "github.com/rdmactor/rdmactor/remoting"

type countsOf = *remoting.Counts

// perPeer are messages to and from peers. With Config.Peers 0 the label is always "all".
var perPeer = func() (g group[countsOf]) {
	add := func(name, help string, value func(countsOf) uint64) {
		g.addMetric(Definition{"peer", name, Counter, None, []string{"peer"}, help}, func(c countsOf) float64 { return float64(value(c)) })
	}
	add("sent_messages", "Messages to peers that were accepted from this node's actors.", func(c countsOf) uint64 { return c.Sent })
	add("received_messages", "Messages from peers.", func(c countsOf) uint64 { return c.Received })
	add("overflowed_messages", "Messages to peers that found no room.", func(c countsOf) uint64 { return c.Overflowed })
	add("dead_letters", "Of the messages sent, those that were not sent in time.", func(c countsOf) uint64 { return c.DeadLetters })
	add("unknown_messages", "Of the messages sent, those of which it is unknown whether they arrived.", func(c countsOf) uint64 { return c.Unknown })
	add("refused_messages", "Of the messages received, those that were not delivered.", func(c countsOf) uint64 { return c.Refused })
	add("late_answers", "Of the messages received, answers to requests that had already ended.", func(c countsOf) uint64 { return c.Late })
	add("unreported_events", "Events and dead letters dropped beside slow subscribers.", func(c countsOf) uint64 { return c.Unreported })
	return g
}()

// peersNow is the present state of the peers with one label.
type peersNow struct{ known, connected, waiting, futures, watching, watched int }

var perPeerNow = func() (g group[*peersNow]) {
	add := func(unit Unit, name, help string, value func(*peersNow) int) {
		g.addMetric(Definition{"peer", name, Gauge, unit, []string{"peer"}, help}, func(p *peersNow) float64 { return float64(value(p)) })
	}
	add(None, "known", "Peers that this node deals with.", func(p *peersNow) int { return p.known })
	add(None, "connected", "Peers that are connected.", func(p *peersNow) int { return p.connected })
	add(Bytes, "waiting", "Bytes that wait to be sent to peers.", func(p *peersNow) int { return p.waiting })
	add(None, "futures", "Futures that wait for answers of peers.", func(p *peersNow) int { return p.futures })
	add(None, "watching", "Watches of this node's actors.", func(p *peersNow) int { return p.watching })
	add(None, "watched", "Watches of the peers' actors.", func(p *peersNow) int { return p.watched })
	return g
}()

// readPeers reads the node.
func (s *Source) readPeers() []Sample {
	if s.cfg.Node == nil {
		return nil
	}
	return s.peerSamples(s.cfg.Node.Account())
}

// peerSamples sums the peers with one label. Those that the node has forgotten are in the rest.
func (s *Source) peerSamples(peers []remoting.PeerInfo, forgotten remoting.Counts) (all []Sample) {
	name := func(i int) string { return peers[i].Peer.Name }
	s.peers.assignLabels(len(peers), name, name)
	labels := []string{s.peers.rest}
	sums := map[string]countsOf{s.peers.rest: &forgotten}
	now := map[string]*peersNow{s.peers.rest: new(peersNow)}
	for i := range peers {
		p := &peers[i]
		l := s.peers.given[p.Peer.Name]
		if sums[l] == nil {
			labels = append(labels, l)
			sums[l], now[l] = new(remoting.Counts), new(peersNow)
		}
		sums[l].Add(p.Counts)
		now[l].addPeer(p)
	}
	for _, l := range labels {
		all = perPeer.appendSamples(all, sums[l], l)
		all = perPeerNow.appendSamples(all, now[l], l)
	}
	return all
}

func (n *peersNow) addPeer(p *remoting.PeerInfo) {
	n.known++
	if p.Connected {
		n.connected++
	}
	n.waiting += p.Waiting
	n.futures += p.Futures
	n.watching += p.Watching
	n.watched += p.Watched
}
