package oracle

import "testing"

// pipe returns a direction with messages of these lengths, from one sender that wants a report of
// each.
func pipe(l *Messages, lengths ...int) *Direction {
	d := l.Direction("a to b")
	for _, n := range lengths {
		d.Submit("sender", n, true)
	}
	return d
}

// bytesOf generates a message of the direction.
func bytesOf(d *Direction, number uint64) []byte {
	p := make([]byte, d.sent[number].length)
	d.Fill(p, number)
	return p
}

// receive enters the receipt of messages.
func receive(d *Direction, numbers ...uint64) {
	for _, n := range numbers {
		d.Received(s, bytesOf(d, n))
	}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct {
		name, want string
		lengths    []int
		do         func(d *Direction)
		delivered  bool
	}{
		{"all in order", "", []int{0, 1, 8, 8, 300}, func(d *Direction) {
			receive(d, 0, 1, 2, 3, 4)
			d.Fate(s, "sender", Sent, 5)
			d.Closed(s, 5, 0, 0)
		}, true},
		{"the end cuts some off", "", []int{8, 8, 8}, func(d *Direction) {
			receive(d, 0)
			d.Fate(s, "sender", Sent, 1)
			d.Fate(s, "sender", Unknown, 1)
			d.Fate(s, "sender", Unsent, 1)
			d.Closed(s, 0, 1, 2)
		}, false},
		{"one is refused, and later ones go", "", []int{8, 8, 8}, func(d *Direction) {
			receive(d, 0, 2)
			d.Fate(s, "sender", Sent, 2)
			d.Fate(s, "sender", Unsent, 1)
			d.Closed(s, 2, 1, 0)
		}, true},
		{"one came too late for the identifier", "", []int{8, 8}, func(d *Direction) {
			receive(d, 0)
			d.Fate(s, "sender", Sent, 1)
			d.Fate(s, "sender", Dead, 1)
			d.Closed(s, 1, 0, 0)
		}, true},
		{"twice", "is received twice", []int{8, 8}, func(d *Direction) { receive(d, 0, 0) }, false},
		{"out of order", "is received after message 1", []int{8, 8}, func(d *Direction) { receive(d, 1, 0) }, false},
		{"a wrong byte", "byte 3 of message 0", []int{8}, func(d *Direction) {
			p := bytesOf(d, 0)
			p[3]++
			d.Received(s, p)
		}, false},
		{"a wrong length", "nobody has sent", []int{8}, func(d *Direction) { d.Received(s, bytesOf(d, 0)[:7]) }, false},
		{"another connection's", "of b to a is received here", []int{8}, func(d *Direction) {
			o := d.l.Direction("b to a")
			o.Submit("sender", 8, true)
			d.Received(s, bytesOf(o, 0))
		}, false},
		{"lost in the middle", "later messages than [1]", []int{8, 8, 8}, func(d *Direction) {
			receive(d, 0, 2)
			d.Fate(s, "sender", Sent, 3)
		}, false},
		{"lost at an orderly end", "were not received", []int{8, 8}, func(d *Direction) {
			receive(d, 0)
			d.Fate(s, "sender", Sent, 2)
		}, true},
		{"unsent and received", "reported not to have been sent", []int{8}, func(d *Direction) {
			receive(d, 0)
			d.Fate(s, "sender", Unsent, 1)
		}, false},
		{"received and then unsent", "reported not to have been sent", []int{8}, func(d *Direction) {
			d.Fate(s, "sender", Unsent, 1)
			receive(d, 0)
		}, false},
		{"no fate", "the fates of 0 messages", []int{8}, func(d *Direction) { receive(d, 0) }, false},
		{"no fate, and its sender has stopped", "", []int{8}, func(d *Direction) { d.Mute("sender"); d.Mute("nobody") }, true},
		{"two fates", "1 times Sent and 1 failures", []int{8}, func(d *Direction) {
			receive(d, 0)
			d.Fate(s, "sender", Sent, 1)
			d.Fate(s, "sender", Unknown, 1)
		}, false},
		{"a fate that nobody wanted to know", "was asked for 0 times", nil, func(d *Direction) {
			d.Submit("quiet", 8, false)
			d.Fate(s, "quiet", Sent, 1)
		}, false},
		{"a fate of nothing", "has sent nothing", nil, func(d *Direction) { d.Fate(s, "stranger", Sent, 1) }, false},
		{"delivered more than came", "says 2 delivered, and 1 were received", []int{8, 8}, func(d *Direction) {
			receive(d, 0)
			d.Closed(s, 2, 0, 0)
		}, false},
		{"unsent more than did not come", "says 2 of 2 unsent", []int{8, 8}, func(d *Direction) {
			receive(d, 0)
			d.Closed(s, 0, 2, 0)
		}, false},
		{"counts too many", "and 1 were sent", []int{8}, func(d *Direction) { d.Closed(s, 0, 1, 1) }, false},
		{"counts too few", "Closed counts 1 messages, and the identifier got 2", []int{8, 8}, func(d *Direction) {
			d.Fate(s, "sender", Unknown, 2)
			d.Closed(s, 0, 0, 1)
		}, false},
		{"changed while it was retained", "byte 2 of message 0 has changed", []int{8}, func(d *Direction) {
			receive(d, 0)
			d.Fate(s, "sender", Sent, 1)
			p := bytesOf(d, 0)
			d.Check(s, 0, p)
			p[2]++
			d.Check(s, 0, p)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			d := pipe(&Messages{Fail: v.fail}, c.lengths...)
			c.do(d)
			d.End(2*s, c.delivered)
			v.want(t, c.want)
		})
	}
}

func TestOutstanding(t *testing.T) {
	d := pipe(&Messages{Fail: t.Errorf}, 8, 8, 8)
	receive(d, 0)
	d.Fate(s, "sender", Unsent, 1)
	if n := d.Outstanding(); n != 1 {
		t.Errorf("%d outstanding, want 1 of 3: one was received, one failed", n)
	}
	if n := d.Count(); n != 1 {
		t.Errorf("%d received, want 1", n)
	}
	d.Submit("another", 8, false)
	d.Mute("sender")
	if n := d.Outstanding(); n != 1 {
		t.Errorf("%d outstanding, want 1: the failure of the others may be unknown, as their sender has stopped", n)
	}
}
