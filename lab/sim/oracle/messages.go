package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Fate is the reported fate of a message.
type Fate uint8

// The fates.
const (
	// Sent: the device has taken the message, or, if it is large, the peer's device has read it.
	Sent Fate = iota + 1
	// Unsent: it certainly never left this side.
	Unsent
	// Unknown: it failed, and may have arrived nevertheless.
	Unknown
	// Dead: the identifier was gone. It does not count the message.
	Dead
)

func (f Fate) String() string {
	return [...]string{"nothing", "Sent", "Unsent", "Unknown", "Dead"}[f]
}

// Messages judges the messages of connections. Each direction of each connection has its own
// number, and its messages are numbered in the order in which they were sent. The zero value, with
// Fail set, is empty.
type Messages struct {
	Fail Fail

	all []*Direction
}

// Direction is the messages of one side of a connection.
type Direction struct {
	l    *Messages
	id   uint64
	name string // for verdicts

	sent     []*message
	groups   map[string]*group
	next     int // the lowest number that may still be received
	received int
	failed   int    // according to the reports
	lost     []int  // passed over, because a later one was received
	muted    bool   // one of the senders is mute
	closed   bool   // the sending side has ended
	counted  uint64 // total in the last event
}

// message is a message of a direction.
type message struct {
	length   int
	group    *group
	received bool
}

// group is the messages of one sender. A report to a sender may cover several messages and does not
// name them.
type group struct {
	name    string
	numbers []int
	notify  int
	mute    bool
	vague   bool // some of its messages cannot be distinguished
	reports [Dead + 1]int
	got     int // received messages
}

// countUnsent returns how many were certainly not sent.
func (g *group) countUnsent() int { return g.reports[Unsent] + g.reports[Dead] }

// countFailed returns how many are reported as failed.
func (g *group) countFailed() int { return g.countUnsent() + g.reports[Unknown] }

// distinct is the length from which a message differs from all others.
const distinct = 8

// Direction enters a direction, with a name for verdicts.
func (l *Messages) Direction(name string) *Direction {
	d := &Direction{l: l, id: uint64(len(l.all) + 1), name: name, groups: make(map[string]*group)}
	l.all = append(l.all, d)
	return d
}

// Submit enters a message that is about to be sent, and returns its number, from which Fill
// generates its bytes. Its reports go to sender.
func (d *Direction) Submit(sender string, length int, notify bool) (number uint64) {
	g := d.groups[sender]
	if g == nil {
		g = &group{name: sender}
		d.groups[sender] = g
	}
	n := len(d.sent)
	d.sent = append(d.sent, &message{length: length, group: g})
	g.numbers = append(g.numbers, n)
	g.vague = g.vague || length < distinct
	if notify {
		g.notify++
	}
	return uint64(n)
}

// Mute enters that a sender has stopped, so that reports to it may be missing.
func (d *Direction) Mute(sender string) {
	if g := d.groups[sender]; g != nil {
		g.mute, d.muted = true, true
	}
}

// Fill writes the bytes of a message of this direction.
func (d *Direction) Fill(p []byte, number uint64) { Fill(p, d.id, number) }

// Fate enters a report to a sender about n of its messages.
func (d *Direction) Fate(now time.Duration, sender string, f Fate, n int) {
	g := d.groups[sender]
	if g == nil {
		d.l.Fail("%v: %s: %v is reported to %s, which has sent nothing", now, d.name, f, sender)
		return
	}
	g.reports[f] += n
	if f != Sent {
		d.failed += n
	}
	switch sent, failed, all := g.reports[Sent], g.countFailed(), len(g.numbers); {
	case sent > g.notify:
		d.l.Fail("%v: %s: Sent is reported to %s %d times, and was asked for %d times", now, d.name, sender, sent, g.notify)
	case sent+failed > all:
		d.l.Fail("%v: %s: %d times Sent and %d failures are reported to %s, which has sent %d messages", now, d.name, sent, failed, sender, all)
	}
	d.judgeFates(now, g)
}

// judgeFates compares the fates that are reported to a sender with the received messages.
func (d *Direction) judgeFates(now time.Duration, g *group) {
	if all := len(g.numbers); !g.vague && g.got > all-g.countUnsent() {
		d.l.Fail("%v: %s: %d of %d messages of %s were received, and %d are reported not to have been sent", now, d.name, g.got, all, g.name, g.countUnsent())
	}
}

// Received enters a message that the receiver has got, and returns its number. Not ok: the message
// is not possible.
func (d *Direction) Received(now time.Duration, p []byte) (number uint64, ok bool) {
	for n := d.next; n < len(d.sent); n++ {
		if m := d.sent[n]; !m.received && m.length == len(p) && isMessage(p, d.id, uint64(n)) {
			d.recordReceived(now, n)
			return uint64(n), true
		}
	}
	d.l.Fail("%v: %s: %s", now, d.name, d.describeStray(p))
	return 0, false
}

// recordReceived records the receipt of a message.
func (d *Direction) recordReceived(now time.Duration, n int) {
	m := d.sent[n]
	m.received = true
	m.group.got++
	d.received++
	d.judgeFates(now, m.group)
	for ; d.next < n; d.next++ {
		if d.sent[d.next].length >= distinct {
			d.lost = append(d.lost, d.next)
		}
	}
	d.next = n + 1
}

// describeStray describes an unexpected message.
func (d *Direction) describeStray(p []byte) string {
	for n, m := range d.sent {
		if m.length == len(p) && isMessage(p, d.id, uint64(n)) {
			if m.received {
				return fmt.Sprintf("message %d (%d bytes) is received twice", n, m.length)
			}
			return fmt.Sprintf("message %d (%d bytes) is received after message %d", n, m.length, d.next-1)
		}
	}
	for _, o := range d.l.all {
		for n, m := range o.sent {
			if len(p) >= distinct && m.length == len(p) && isMessage(p, o.id, uint64(n)) {
				return fmt.Sprintf("message %d of %s is received here", n, o.name)
			}
		}
	}
	if d.next < len(d.sent) {
		if m := d.sent[d.next]; m.length == len(p) {
			return fmt.Sprintf("byte %d of message %d (%d bytes) is wrong", wrongIndex(p, d.id, uint64(d.next)), d.next, m.length)
		}
	}
	return fmt.Sprintf("%d bytes are received that nobody has sent; message %d would be next, of %d", len(p), d.next, len(d.sent))
}

// Check enters a second look at a received message, before it is released.
func (d *Direction) Check(now time.Duration, number uint64, p []byte) {
	if i := wrongIndex(p, d.id, number); i >= 0 {
		d.l.Fail("%v: %s: byte %d of message %d has changed while its owner had it", now, d.name, i, number)
	}
}

// Closed enters the counts of all messages in the sending side's last event.
func (d *Direction) Closed(now time.Duration, delivered, unsent, unknown uint64) {
	all := uint64(len(d.sent))
	d.closed, d.counted = true, delivered+unsent+unknown
	switch {
	case d.counted > all:
		d.l.Fail("%v: %s: Closed says %d delivered, %d unsent, %d unknown, and %d were sent", now, d.name, delivered, unsent, unknown, all)
	case delivered > uint64(d.received):
		d.l.Fail("%v: %s: Closed says %d delivered, and %d were received", now, d.name, delivered, d.received)
	case uint64(d.received) > all-unsent:
		d.l.Fail("%v: %s: Closed says %d of %d unsent, and %d were received", now, d.name, unsent, all, d.received)
	}
}

// Outstanding returns how many messages may still be received. Those of mute senders do not count:
// it is unknown which of them have failed.
func (d *Direction) Outstanding() int {
	n := len(d.sent) - d.received - d.failed
	for _, g := range d.groups {
		if g.mute {
			n -= max(len(g.numbers)-g.got-g.countFailed(), 0)
		}
	}
	return max(n, 0)
}

// Bytes returns the total length of the messages that were neither received nor passed over,
// including failed ones.
func (d *Direction) Bytes() (n int) {
	for _, m := range d.sent[min(d.next, len(d.sent)):] {
		if !m.received {
			n += m.length
		}
	}
	return n
}

// Submitted returns how many messages were entered.
func (d *Direction) Submitted() int { return len(d.sent) }

// Count returns how many messages were received.
func (d *Direction) Count() int { return d.received }

// End judges the end of the world, when all senders were answered. delivered: the connection has
// ended in order, so that all accepted messages must have arrived. End is not called for a sender
// whose process was killed.
func (d *Direction) End(now time.Duration, delivered bool) {
	lost := make(map[*group][]int)
	for _, n := range d.lost {
		lost[d.sent[n].group] = append(lost[d.sent[n].group], n)
	}
	dead := 0
	for _, g := range d.sortedGroups() {
		failed := g.countFailed()
		dead += g.reports[Dead]
		if g.mute {
			continue
		}
		if n := g.reports[Sent] + failed; n < g.notify {
			d.l.Fail("%v: %s: the fates of %d messages are reported to %s, which has asked for %d", now, d.name, n, g.name, g.notify)
		}
		if len(lost[g]) > failed {
			d.l.Fail("%v: %s: later messages than %s were received, and %d of %s are reported to have failed", now, d.name, firstFew(lost[g]), failed, g.name)
		}
		if n := len(g.numbers) - g.got; delivered && !g.vague && n > failed {
			d.l.Fail("%v: %s: %d of %d messages of %s were not received, and %d are reported to have failed", now, d.name, n, len(g.numbers), g.name, failed)
		}
	}
	if n := uint64(len(d.sent) - dead); d.closed && !d.muted && d.counted != n {
		d.l.Fail("%v: %s: Closed counts %d messages, and the identifier got %d", now, d.name, d.counted, n)
	}
}

// sortedGroups returns the groups, in the order of their names.
func (d *Direction) sortedGroups() (all []*group) {
	for _, name := range slices.Sorted(maps.Keys(d.groups)) {
		all = append(all, d.groups[name])
	}
	return all
}
