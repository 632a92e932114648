package oracle

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// Posts judges messages between actors of nodes that come and go, and the fate of each. A node has
// consecutive [Life]s. The zero value, with Fail set, is empty.
type Posts struct {
	Fail Fail

	posts  []*Post
	lives  map[string][]*Life // keyed by node name, oldest first
	routes map[route][]*Post
	pairs  map[stream]uint64 // the last received post
	// number of messages that nodes refused, of which only the route is known
	refused map[route]int
}

// Place is an actor's address: the names of its node and of the actor.
type Place struct{ Node, Name string }

// Life is a run of a node.
type Life struct {
	l       *Posts
	node    string
	number  int
	over    bool
	abrupt  bool // did not end in order
	ended   time.Duration
	actors  map[string]*presence
	reach   map[string]*presence // actors that other nodes may reach
	grants  map[Place]*granted   // grants to the Node to reach the Name
	cuts    []cut
	gaps    []cut
	watches map[watchKey]*watching
}

// presence is something that may begin and end several times.
type presence struct {
	now          bool
	began, ended time.Duration // the latest; ended: -1 never
	silent       bool          // messages it had not received at its end are not reported
}

// granted describes which lives of a node may reach an actor of another one, regardless of
// exposure.
type granted struct {
	any   bool           // every life may: the actor is a future
	waits int            // messages with the actor as the sender that no life has received
	to    map[*Life]bool // lives that have received one, or for which the actor was spawned
}

// presentSince reports whether it was there at any time since t.
func (p *presence) presentSince(t time.Duration) bool { return p != nil && (p.now || p.ended >= t) }

// alwaysSince reports whether it was there all the time since t.
func (p *presence) alwaysSince(t time.Duration) bool {
	return p != nil && p.now && p.began <= t && p.ended < t
}

// cut is the end of a connection, or of a period in which a node has reported nothing.
type cut struct {
	at      time.Duration
	peer    string
	unknown int
}

// Spec describes a message.
type Spec struct {
	To     Place
	Sender string // name of the actor on this node that wants the answer; "": none
	Stream string // sending actor or goroutine: messages of one stream keep their order
	Length int
	// Bad: it cannot be encoded, or the receiver does not know its type.
	Bad bool
}

// Post is a message.
type Post struct {
	l      *Posts
	number uint64
	wire   uint64 // number in its bytes: the original's if it was forwarded
	life   *Life
	spec   Spec
	asker  Place // recipient of the answer, if it is known
	at     time.Duration
	got    bool
	dead   bool
	passed bool // forwarded, so that its fate is also that of the other post
	future bool
	fate   FutureFate
}

// FutureFate is the result of a future.
type FutureFate uint8

// The fates of futures.
const (
	WasAnswered FutureFate = iota + 1
	WasDead                // the request was certainly not delivered
	WasRefused             // refused, so certainly not delivered
	WasUnsure              // unknown whether the request was delivered
	WasLate                // the future's time was over
)

func (f FutureFate) String() string {
	return [...]string{"nothing", "an answer", "a dead letter", "a refusal", "unknown", "a time-out"}[f]
}

// route is the known part of a refused message.
type route struct{ to, asker Place }

// routeOf returns the route of a message. All futures of a node count as one asker: their names on
// other nodes are reused.
func routeOf(to, asker Place) route {
	if strings.HasPrefix(asker.Name, futurePrefix) {
		asker.Name = futurePrefix
	}
	return route{to, asker}
}

// isCalled reports whether place may be the name of p on other nodes: a future has a different name
// there.
func (p Place) isCalled(place Place) bool {
	return p.Node == place.Node && strings.HasPrefix(p.Name, futurePrefix) && strings.HasPrefix(place.Name, futurePrefix+"#")
}

// futurePrefix is the prefix of the names of Proto.Actor's futures, on every node.
const futurePrefix = "future$"

// stream identifies messages that keep their order.
type stream struct {
	from *Life
	who  string
	to   Place
}

// MinPost is the minimum length of a message, which identifies it.
const MinPost = 8

// posts is the direction of Fill.
const posts = 1 << 50

// Life enters that a node begins.
func (l *Posts) Life(node string) *Life {
	if l.lives == nil {
		l.lives, l.routes, l.pairs = make(map[string][]*Life), make(map[route][]*Post), make(map[stream]uint64)
	}
	f := &Life{
		l: l, node: node, number: len(l.lives[node]) + 1, actors: make(map[string]*presence), reach: make(map[string]*presence),
		grants: make(map[Place]*granted), watches: make(map[watchKey]*watching),
	}
	l.lives[node] = append(l.lives[node], f)
	return f
}

// String names a life for verdicts.
func (f *Life) String() string { return fmt.Sprintf("%s (life %d)", f.node, f.number) }

// Over enters that a life has ended: it was killed, or its shutdown had to abandon something. Its
// later entries do not count.
func (f *Life) Over(now time.Duration) { f.recordEnd(now, true) }

// Ended enters that a life has ended in order: all its messages are accounted for.
func (f *Life) Ended(now time.Duration) { f.recordEnd(now, false) }

func (f *Life) recordEnd(now time.Duration, abrupt bool) {
	if !f.over {
		f.over, f.abrupt, f.ended = true, abrupt, now
	}
}

// Lives reports whether the life continues.
func (f *Life) Lives() bool { return !f.over }

// setPresence records that something begins or ends.
func setPresence(m map[string]*presence, now time.Duration, name string, on bool) *presence {
	p := m[name]
	if p == nil {
		p = &presence{ended: -1}
		m[name] = p
	}
	switch {
	case on && !p.now:
		p.began = now
	case !on && p.now:
		p.ended = now
	}
	p.now = on
	return p
}

// Begins enters that an actor of that name exists.
func (f *Life) Begins(now time.Duration, name string) { setPresence(f.actors, now, name, true) }

// Stops enters that an actor of that name is gone, or is about to go. silent: messages that it has
// not received are not reported.
func (f *Life) Stops(now time.Duration, name string, silent bool) {
	p := setPresence(f.actors, now, name, false)
	p.silent = p.silent || silent
}

// Expose enters whether other nodes may reach an actor of that name from now on.
func (f *Life) Expose(now time.Duration, name string, on bool) { setPresence(f.reach, now, name, on) }

// Grant enters that a life of another node may reach an actor, regardless of exposure.
func (f *Life) Grant(to *Life, name string) { f.grantsTo(to.node, name).to[to] = true }

// grantsTo returns the grants to a node.
func (f *Life) grantsTo(node, name string) *granted {
	g := f.grants[Place{node, name}]
	if g == nil {
		g = &granted{to: make(map[*Life]bool)}
		f.grants[Place{node, name}] = g
	}
	return g
}

// mayReach reports whether a life of another node may reach an actor. A message that no life has
// received may be for the next one.
func (f *Life) mayReach(by *Life, name string) bool {
	g := f.grants[Place{by.node, name}]
	return g != nil && (g.any || g.waits > 0 || g.to[by])
}

// recordArrival records that a message has arrived at a life, which may answer it.
func (p *Post) recordArrival(at *Life) {
	if p.spec.Sender != "" && !p.got && !p.dead && at != p.life {
		p.life.grantsTo(at.node, p.spec.Sender).waits--
		p.life.Grant(at, p.spec.Sender)
	}
}

// Submit enters a message that is about to be sent.
func (f *Life) Submit(now time.Duration, s Spec) *Post {
	p := f.addPost(now, s)
	if s.Sender != "" {
		p.asker = Place{f.node, s.Sender}
		f.grantsTo(s.To.Node, s.Sender).waits++
	}
	f.l.indexPost(p)
	return p
}

func (f *Life) addPost(now time.Duration, s Spec) *Post {
	n := uint64(len(f.l.posts))
	p := &Post{l: f.l, number: n, wire: n, life: f, spec: s, at: now}
	f.l.posts = append(f.l.posts, p)
	return p
}

func (p *Post) route() route { return routeOf(p.spec.To, p.asker) }

// indexPost indexes a post by its route, which is all that is known of it when it is refused.
func (l *Posts) indexPost(p *Post) {
	l.routes[p.route()] = append(l.routes[p.route()], p)
}

// Ask is Submit for a request of a future. The future's name is entered by Asked.
func (f *Life) Ask(now time.Duration, s Spec) *Post {
	p := f.addPost(now, s)
	p.future = true
	return p
}

// Asked enters the name of the future that waits for the answer.
func (p *Post) Asked(future string) {
	p.asker = Place{p.life.node, future}
	p.life.Begins(p.at, future)
	p.life.grantsTo(p.spec.To.Node, future).any = true
	p.l.indexPost(p)
}

// Forward enters that an actor of f is about to forward a message that it has received. Its
// receiver sees the original asker.
func (f *Life) Forward(now time.Duration, p *Post, who string, to Place) *Post {
	q := f.addPost(now, Spec{To: to, Stream: who, Length: p.spec.Length})
	q.wire, q.asker, p.passed = p.wire, p.asker, true
	if p.future { // any recipient of the request may answer it
		p.life.grantsTo(to.Node, p.asker.Name).any = true
	}
	f.l.indexPost(q)
	return q
}

// Bytes generates the message.
func (p *Post) Bytes() []byte {
	b := make([]byte, p.spec.Length)
	Fill(b, posts, p.wire)
	binary.LittleEndian.PutUint64(b, p.wire)
	return b
}

// Number returns the post's own number.
func (p *Post) Number() uint64 { return p.number }

// Wire returns the number in its bytes: its own, or that of the forwarded post.
func (p *Post) Wire() uint64 { return p.wire }

// Future returns the name of the future that waits for its answer.
func (p *Post) Future() string { return p.asker.Name }

// Asker returns the recipient of its answer. A future has a different name on other nodes.
func (p *Post) Asker() Place { return p.asker }

// String names a post for verdicts.
func (p *Post) String() string {
	return fmt.Sprintf("post %d from %v to %s at %s", p.number, p.life, p.spec.To.Name, p.spec.To.Node)
}

// findPost returns the post with those bytes to a place; nil: none.
func (l *Posts) findPost(b []byte, to Place) *Post {
	if len(b) < MinPost {
		return nil
	}
	wire := binary.LittleEndian.Uint64(b)
	if wire >= uint64(len(l.posts)) {
		return nil
	}
	for _, p := range l.posts[wire:] {
		if p.wire == wire && (p.spec.To == to || p.spec.To.isCalled(to)) {
			return p
		}
	}
	return nil
}

// Intact reports whether the bytes are still those of the message.
func (p *Post) Intact(b []byte) bool {
	if len(b) != p.spec.Length || len(b) < MinPost || binary.LittleEndian.Uint64(b) != p.wire {
		return false
	}
	for i := MinPost; i < len(b); i++ {
		if b[i] != byteAt(posts, p.wire, i) {
			return false
		}
	}
	return true
}

// Received enters that an actor of f has received a message, and returns its post; nil: not entered
// by a workload.
func (f *Life) Received(now time.Duration, name string, b []byte) *Post {
	l, here := f.l, Place{f.node, name}
	if f.over {
		return nil
	}
	p := l.findPost(b, here)
	switch {
	case p == nil:
		l.Fail("%v: %s of %v has got %d bytes that nobody has sent it", now, name, f, len(b))
		return nil
	case !p.Intact(b):
		l.Fail("%v: %v has other bytes than it had", now, p)
	case p.got:
		l.Fail("%v: %v is received twice", now, p)
	case p.spec.Bad:
		l.Fail("%v: %v is received, and cannot be encoded or decoded", now, p)
	case p.dead || p.fate == WasDead || p.fate == WasRefused:
		l.Fail("%v: %v is received, and was reported not to be", now, p)
	case p.life != f && !f.reach[name].presentSince(p.at) && !f.mayReach(p.life, name):
		l.Fail("%v: %v is received, and its target is neither exposed nor granted", now, p)
	}
	p.recordArrival(f)
	p.got = true
	l.judgeRefusals(now, p.route())
	s := stream{p.life, p.spec.Stream, here}
	if last, ok := l.pairs[s]; ok && last > p.number {
		l.Fail("%v: %v is received after post %d of the same sender", now, p, last)
	}
	l.pairs[s] = max(l.pairs[s], p.number)
	return p
}
