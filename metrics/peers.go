package metrics

import "github.com/rdmactor/rdmactor/remoting"

type countsOf = *remoting.Counts

// perPeer are messages to and from peers. With Config.Peers 0 the label is always "all".
var perPeer = func() (g group[countsOf]) {
	add := func(name, help string, value func(countsOf) uint64) {
		g.add(Definition{"peer", name, Counter, None, []string{"peer"}, help}, func(c countsOf) float64 { return float64(value(c)) })
	}
	add("sent_messages", "Messages to peers that were accepted from this node's actors.", func(c countsOf) uint64 { return c.Sent })
	add("received_messages", "Messages from peers.", func(c countsOf) uint64 { return c.Received })
	add("overflowed_messages", "Messages to peers that found no room.", func(c countsOf) uint64 { return c.Overflowed })
	add("dead_letters", "Of the messages sent, those that were not sent in time.", func(c countsOf) uint64 { return c.DeadLetters })
	add("unknown_messages", "Of the messages sent, those of which nobody knows whether they have arrived.", func(c countsOf) uint64 { return c.Unknown })
	add("refused_messages", "Of the messages received, those that were not delivered.", func(c countsOf) uint64 { return c.Refused })
	add("late_answers", "Of the messages received, answers that nobody asks for any more.", func(c countsOf) uint64 { return c.Late })
	add("unreported_events", "Events and dead letters dropped beside slow subscribers.", func(c countsOf) uint64 { return c.Unreported })
	return g
}()

// peersNow is what is so at this moment, of the peers with one label.
type peersNow struct{ known, connected, waiting, futures, watching, watched int }

var perPeerNow = func() (g group[*peersNow]) {
	add := func(unit Unit, name, help string, value func(*peersNow) int) {
		g.add(Definition{"peer", name, Gauge, unit, []string{"peer"}, help}, func(p *peersNow) float64 { return float64(value(p)) })
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
	return s.peers.samples(s.cfg.Node.Peers())
}

// tally adds peers up. A node forgets peers that have gone, and sums must not shrink then: what
// such a peer had counted when it was read last is kept. Only one reading at a time.
type tally struct {
	most  int                        // labels for single peers
	rest  string                     // the label of all others
	named int                        // labels in use
	last  map[string]*counted        // by the peers' names
	past  map[string]remoting.Counts // of those that have gone, by label
}

// counted is a peer as it was read last.
type counted struct {
	label  string
	counts remoting.Counts
	seen   bool
}

func newTally(most int) *tally {
	t := &tally{most: most, rest: labelAll, last: make(map[string]*counted), past: make(map[string]remoting.Counts)}
	if most > 0 {
		t.rest = labelOther
	}
	return t
}

func (t *tally) samples(peers []remoting.PeerInfo) []Sample {
	now := make(map[string]*peersNow)
	labels := []string{t.rest}
	now[t.rest] = new(peersNow)
	for i := range peers {
		p := &peers[i]
		c := t.count(p)
		n := now[c.label]
		if n == nil {
			n = new(peersNow)
			now[c.label] = n
			labels = append(labels, c.label)
		}
		n.add(p)
	}
	sums := t.sums()
	var all []Sample
	for _, l := range labels {
		c := sums[l]
		all = perPeer.samples(all, &c, l)
		all = perPeerNow.samples(all, now[l], l)
	}
	return all
}

// count notes what a peer has counted. A peer that came back has begun anew.
func (t *tally) count(p *remoting.PeerInfo) *counted {
	c := t.last[p.Peer.Name]
	if c == nil {
		c = &counted{label: t.rest}
		if t.named < t.most {
			t.named++
			c.label = label(p.Peer.Name)
		}
		t.last[p.Peer.Name] = c
	}
	if fewer(&p.Counts, &c.counts) {
		t.keep(c)
	}
	c.counts, c.seen = p.Counts, true
	return c
}

// keep adds what a peer that has gone had counted to those that have gone.
func (t *tally) keep(c *counted) {
	sum := t.past[c.label]
	addCounts(&sum, &c.counts)
	t.past[c.label] = sum
}

// sums drops the peers that were not seen, and adds up.
func (t *tally) sums() map[string]remoting.Counts {
	for name, c := range t.last {
		if c.seen {
			continue
		}
		delete(t.last, name)
		if c.label != t.rest {
			t.named--
			sum := t.past[c.label]
			delete(t.past, c.label)
			addCounts(&sum, &c.counts)
			c.label, c.counts = t.rest, sum
		}
		t.keep(c)
	}
	sums := make(map[string]remoting.Counts, len(t.past)+1)
	for l, c := range t.past {
		sums[l] = c
	}
	for _, c := range t.last {
		sum := sums[c.label]
		addCounts(&sum, &c.counts)
		sums[c.label], c.seen = sum, false
	}
	return sums
}

func (n *peersNow) add(p *remoting.PeerInfo) {
	n.known++
	if p.Connected {
		n.connected++
	}
	n.waiting += p.Waiting
	n.futures += p.Futures
	n.watching += p.Watching
	n.watched += p.Watched
}

func addCounts(sum, c countsOf) {
	sum.Sent += c.Sent
	sum.Received += c.Received
	sum.Overflowed += c.Overflowed
	sum.DeadLetters += c.DeadLetters
	sum.Unknown += c.Unknown
	sum.Refused += c.Refused
	sum.Late += c.Late
	sum.Unreported += c.Unreported
}

// fewer reports whether anything has been counted less often than before.
func fewer(c, before countsOf) bool {
	return c.Sent < before.Sent || c.Received < before.Received || c.Overflowed < before.Overflowed ||
		c.DeadLetters < before.DeadLetters || c.Unknown < before.Unknown || c.Refused < before.Refused ||
		c.Late < before.Late || c.Unreported < before.Unreported
}
