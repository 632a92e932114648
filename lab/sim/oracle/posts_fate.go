package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// DeadLetter enters that a node has turned a message into a dead letter: the node of its sender, or
// of its target. It returns the post; nil: not entered by a workload.
func (f *Life) DeadLetter(now time.Duration, to Place, b []byte) *Post {
	l := f.l
	if f.over {
		return nil
	}
	p := l.findPost(b, to)
	switch {
	case p == nil:
		l.Fail("%v: %v makes %d bytes for %s at %s a dead letter that nobody has sent", now, f, len(b), to.Name, to.Node)
		return nil
	case p.life != f && to.Node != f.node:
		l.Fail("%v: %v makes %v a dead letter, and has nothing to do with it", now, f, p)
	case p.got:
		l.Fail("%v: %v is a dead letter, and was received", now, p)
	case p.dead:
		l.Fail("%v: %v is a dead letter twice", now, p)
	}
	p.recordArrival(f)
	p.dead = true
	l.judgeRefusals(now, p.route())
	return p
}

// Full enters that a sender's message was refused, because there was no room for it.
func (f *Life) Full(now time.Duration, sender string, to Place) {
	if !f.over {
		f.l.recordRefusal(now, routeOf(to, Place{f.node, sender}))
	}
}

// Refused enters that a node has refused a message to one of its actors. asker is the recipient of
// the answer, as far as it is known. denied: the reason is that the actor is not exposed.
func (f *Life) Refused(now time.Duration, name string, asker Place, denied bool) {
	l := f.l
	if f.over {
		return
	}
	l.recordRefusal(now, routeOf(Place{f.node, name}, asker))
	// A message that claims to come from this very node may be refused for that.
	if p := f.reach[name]; denied && p != nil && p.now && p.ended < 0 && asker.Node != f.node {
		l.Fail("%v: %v refuses a message to %s, which is exposed", now, f, name)
	}
}

// recordRefusal records that one of the messages with a route is refused; which is unknown.
func (l *Posts) recordRefusal(now time.Duration, r route) {
	if l.refused == nil {
		l.refused = make(map[route]int)
	}
	l.refused[r]++
	l.judgeRefusals(now, r)
}

// judgeRefusals judges that no message was refused and had another fate as well. A message without
// an asker may be an internal one, such as a notification of a dead letter.
func (l *Posts) judgeRefusals(now time.Duration, r route) {
	n := l.refused[r]
	if n == 0 || r.asker == (Place{}) {
		return
	}
	open := 0
	for _, p := range l.routes[r] {
		if !p.got && !p.dead {
			open++
		}
	}
	if n > open {
		l.Fail("%v: %d messages from %q to %q are refused, and %d of them were neither received nor dead letters", now, n, r.asker, r.to, open)
	}
}

// Cut enters that a connection has ended, and for how many messages the receipt is unknown.
func (f *Life) Cut(now time.Duration, peer string, unknown int) {
	if !f.over {
		f.cuts = append(f.cuts, cut{now, peer, unknown})
		f.cutWatches(now, peer)
	}
}

// Gap enters that a node has not reported the fate of so many messages to or from a peer.
func (f *Life) Gap(now time.Duration, peer string, unreported int) {
	if !f.over {
		f.gaps = append(f.gaps, cut{now, peer, unreported})
	}
}

// Fate enters the result of a future.
func (p *Post) Fate(now time.Duration, fate FutureFate) {
	l := p.l
	if p.life.over {
		return
	}
	switch {
	case p.fate != 0:
		l.Fail("%v: the future of %v has got %v, and then %v", now, p, p.fate, fate)
	case fate == WasAnswered && !p.got:
		l.Fail("%v: %v is answered, and was not received", now, p)
	case (fate == WasDead || fate == WasRefused) && p.got && !p.passed:
		l.Fail("%v: the future of %v has got %v, and it was received", now, p, fate)
	}
	p.fate = fate
	p.life.Stops(now, p.asker.Name, true)
}

// Settled reports whether a message was received, or reported individually.
func (p *Post) Settled() bool { return p.got || p.dead || p.fate != 0 }

// Fated reports whether a future has a result.
func (p *Post) Fated() bool { return p.fate != 0 }

// Received reports whether a message was received.
func (p *Post) Received() bool { return p.got }

// Dead reports whether a message has become a dead letter.
func (p *Post) Dead() bool { return p.dead }

// isExcused reports whether a message may have disappeared without a report: with a process, or
// with an actor whose mailbox reports nothing.
func (p *Post) isExcused() bool {
	if p.life.over && p.life.abrupt {
		return true
	}
	for _, t := range p.l.lives[p.spec.To.Node] {
		if t.over && t.ended >= p.at {
			return true
		}
		if a := t.actors[p.spec.To.Name]; a != nil && a.silent && !a.alwaysSince(p.at) {
			return true
		}
	}
	return false
}

// End judges the fate of all messages and watches, when nothing is under way.
func (l *Posts) End(now time.Duration) {
	if what := l.Open(); what != "" {
		l.Fail("%v: %s", now, what)
	}
}

// Open describes the messages and watches that are not accounted for; empty: none.
func (l *Posts) Open() string {
	lost := make(map[stream][]*Post) // keyed without a sender's name
	for _, p := range slices.Backward(l.posts) {
		if p.Settled() || p.isExcused() {
			continue
		}
		s := stream{from: p.life, to: Place{Node: p.spec.To.Node}}
		lost[s] = append(lost[s], p)
	}
	refused := maps.Clone(l.refused)
	for _, s := range slices.SortedFunc(maps.Keys(lost), func(a, b stream) int {
		return strings.Compare(a.from.String()+" "+a.to.Node, b.from.String()+" "+b.to.Node)
	}) {
		if what := s.from.judgeUnknown(s.to.Node, lost[s], refused); what != "" {
			return what
		}
	}
	if owed := l.listOwed(); len(owed) > 0 {
		return "watchers were not notified: " + firstFew(owed)
	}
	return ""
}

// judgeUnknown judges messages to a node that were neither received nor reported individually.
// There may be as many as were reported as unknown at later ends of connections. lost begins with
// the last one. Any messages of a route may be the refused ones, and a route without an asker is
// that of several nodes. So a message is taken as refused, and deducted, if too few are unknown.
func (f *Life) judgeUnknown(peer string, lost []*Post, refused map[route]int) string {
	var open []*Post
	for _, p := range lost {
		open = append(open, p)
		unknown := countUnknown(f.cuts, peer, p.at) + countUnknown(f.gaps, peer, p.at)
		for _, t := range f.l.lives[peer] {
			unknown += countUnknown(t.gaps, f.node, p.at)
		}
		if len(open) <= unknown {
			continue
		}
		i := slices.IndexFunc(open, func(p *Post) bool { return refused[p.route()] > 0 })
		if i < 0 {
			return fmt.Sprintf("%v and %d later ones are neither received nor reported, and of %d nobody knows", p, len(open)-1, unknown)
		}
		refused[open[i].route()]--
		open = slices.Delete(open, i, i+1)
	}
	return ""
}

// countUnknown returns how many messages sent at that time may be among the unknown ones.
func countUnknown(all []cut, peer string, at time.Duration) (unknown int) {
	for _, c := range all {
		if c.peer == peer && c.at >= at {
			unknown += c.unknown
		}
	}
	return unknown
}
