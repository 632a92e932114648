package oracle

import (
	"encoding/binary"
	"time"
)

// Fates judges reconnecting actors: what becomes of each message over the connections that follow
// one another, and in which order their owners learn of these. The zero value, with Fail set, is
// empty.
type Fates struct {
	Fail Fail

	links []*Link
}

// Link is a reconnecting actor, as its owner sees it.
type Link struct {
	l          *Fates
	number     uint64
	name       string
	messages   []*parcel
	generation uint64
	up, closed bool
	refused    int    // messages
	late       int    // messages
	counted    uint64 // by Closed
}

// parcel is a message that an owner has sent.
type parcel struct {
	length            int
	tagged, again     bool // again: it may be repeated
	received, unknown int  // unknown: how often that was reported, with a repetition to follow
	final             bool
	unsent, turned    bool // its final fate: it was unsent, it was refused
}

// MinParcel is how long a message must be: it says which it is.
const MinParcel = 16

// parcels is the directions of Fill.
const parcels = 1 << 52

// Outcome is what an owner learns of a message.
type Outcome uint8

// The outcomes.
const (
	WasDelivered Outcome = iota + 1
	WasUnsent
	WasUnknown
)

// Link enters a reconnecting actor.
func (l *Fates) Link(name string) *Link {
	k := &Link{l: l, number: uint64(len(l.links)), name: name}
	l.links = append(l.links, k)
	return k
}

// Submit enters a message that is about to be sent, and gives its tag, which is not 0, and its
// bytes. again says
// that it may be delivered twice. The fate of one that is not tagged is not reported.
func (k *Link) Submit(length int, tagged, again bool) (tag uint64, p []byte) {
	k.messages = append(k.messages, &parcel{length: length, tagged: tagged, again: again})
	tag = uint64(len(k.messages))
	p = make([]byte, length)
	Fill(p, parcels+k.number, tag)
	binary.LittleEndian.PutUint64(p, k.number)
	binary.LittleEndian.PutUint64(p[8:], tag)
	return tag, p
}

// of finds a message by its tag.
func (k *Link) of(now time.Duration, tag uint64) *parcel {
	if tag == 0 || tag > uint64(len(k.messages)) {
		k.l.Fail("%v: %s: something is reported of message %d, and %d were sent", now, k.name, tag, len(k.messages))
		return nil
	}
	return k.messages[tag-1]
}

// Late enters that a message was sent to the reconnecting actor when that was gone.
func (k *Link) Late() { k.late++ }

// Refused enters that a message was not accepted. Those that are not tagged have tag 0, and are
// only counted.
func (k *Link) Refused(now time.Duration, tag uint64) {
	k.refused++
	if tag == 0 {
		return
	}
	m := k.of(now, tag)
	if m == nil {
		return
	}
	if m.final {
		k.l.Fail("%v: %s: message %d is refused, and had a fate", now, k.name, tag)
	}
	m.final, m.turned = true, true
	if m.received > m.unknown {
		k.l.Fail("%v: %s: message %d is refused, and was received %d times", now, k.name, tag, m.received)
	}
}

// Fate enters a message's outcome in a generation. again says that another one follows.
func (k *Link) Fate(now time.Duration, tag uint64, o Outcome, again bool) {
	m := k.of(now, tag)
	switch {
	case m == nil:
		return
	case m.final:
		k.l.Fail("%v: %s: message %d has another fate", now, k.name, tag)
	case o == WasDelivered && m.received == 0:
		k.l.Fail("%v: %s: message %d is reported as delivered, and nobody has received it", now, k.name, tag)
	case o == WasUnsent && m.received > m.unknown:
		k.l.Fail("%v: %s: message %d is reported as unsent, and was received %d times", now, k.name, tag, m.received)
	case o == WasUnknown && again && !m.again:
		k.l.Fail("%v: %s: message %d may have been delivered, and is to be repeated, which nobody allows", now, k.name, tag)
	}
	if again && o == WasUnknown {
		m.unknown++
	}
	m.final = !again
	m.unsent = m.final && o == WasUnsent
}

// Up enters that a generation has a connection.
func (k *Link) Up(now time.Duration, generation uint64) {
	if k.up || k.closed || generation <= k.generation {
		k.l.Fail("%v: %s: generation %d is up (before: %d, up: %v, closed: %v)", now, k.name, generation, k.generation, k.up, k.closed)
	}
	k.up, k.generation = true, generation
}

// Down enters that a generation has ended.
func (k *Link) Down(now time.Duration, generation uint64, was bool) {
	if k.closed || was != k.up || k.up && generation != k.generation || !k.up && generation <= k.generation {
		k.l.Fail("%v: %s: generation %d is down, was up: %v (before: %d, up: %v, closed: %v)", now, k.name, generation, was, k.generation, k.up, k.closed)
	}
	k.up, k.generation = false, generation
}

// Got enters that the owner has received a message of its peer's.
func (k *Link) Got(now time.Duration) {
	if !k.up {
		k.l.Fail("%v: %s: a message is received while there is no connection", now, k.name)
	}
}

// Closed enters the last event, and how many messages it counts.
func (k *Link) Closed(now time.Duration, counted uint64) {
	if k.closed || k.up {
		k.l.Fail("%v: %s is closed (before: %v, up: %v)", now, k.name, k.closed, k.up)
	}
	k.closed, k.counted = true, counted
}

// End judges what is left when all is over. Reconnecting actors whose owners' processes were killed
// are not judged.
func (l *Fates) End(now time.Duration) {
	for _, k := range l.links {
		if !k.closed {
			continue
		}
		if accepted := uint64(len(k.messages) - k.refused - k.late); k.counted != accepted {
			l.Fail("%v: %s: Closed counts %d messages, and %d were accepted", now, k.name, k.counted, accepted)
		}
		var open []int
		for i, m := range k.messages {
			if m.tagged && !m.final {
				open = append(open, i+1)
			}
		}
		if len(open) > k.late {
			l.Fail("%v: %s is closed, and messages %s have had no fate", now, k.name, some(open))
		}
	}
}

// Arrivals is what has come over one connection.
type Arrivals struct {
	l    *Fates
	next map[uint64]uint64 // by link: the lowest tag that may come
}

// Arrivals enters a connection.
func (l *Fates) Arrivals() *Arrivals { return &Arrivals{l: l, next: make(map[uint64]uint64)} }

// Received enters that a peer has received a message.
func (a *Arrivals) Received(now time.Duration, p []byte) {
	l := a.l
	if len(p) < MinParcel || binary.LittleEndian.Uint64(p) >= uint64(len(l.links)) {
		l.Fail("%v: %d bytes are received that nobody has sent", now, len(p))
		return
	}
	k := l.links[binary.LittleEndian.Uint64(p)]
	tag := binary.LittleEndian.Uint64(p[8:])
	m := k.of(now, tag)
	if m == nil {
		return
	}
	m.received++
	switch {
	case len(p) != m.length || !k.same(p, tag):
		l.Fail("%v: %s: message %d of %d bytes is received as %d other ones", now, k.name, tag, m.length, len(p))
	case tag < a.next[k.number]:
		l.Fail("%v: %s: message %d is received after message %d on one connection", now, k.name, tag, a.next[k.number]-1)
	case m.received > 1 && !m.again:
		l.Fail("%v: %s: message %d is received %d times", now, k.name, tag, m.received)
	case m.final && m.unsent:
		l.Fail("%v: %s: message %d is received, and was reported as unsent", now, k.name, tag)
	case m.turned && m.received > m.unknown:
		l.Fail("%v: %s: message %d is received, and was refused", now, k.name, tag)
	}
	a.next[k.number] = tag + 1
}

// same reports whether a message's bytes are those that were sent.
func (k *Link) same(p []byte, tag uint64) bool {
	for i := MinParcel; i < len(p); i++ {
		if p[i] != at(parcels+k.number, tag, i) {
			return false
		}
	}
	return true
}
