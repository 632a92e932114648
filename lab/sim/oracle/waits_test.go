package oracle

import (
	"errors"
	"slices"
	"testing"
)

func TestBounds(t *testing.T) {
	var v verdicts
	l := &Bounds{Fail: v.fail}
	l.Sample(s, "timers", 3, 0)
	l.Sample(s, "memory", 10, 10)
	l.Sample(s, "memory", 4, 10)
	v.want(t, "")
	var most []string
	l.Most(func(what string, n int) { most = append(most, what, string(rune('0'+n%10))) })
	if !slices.Equal(most, []string{"memory", "0", "timers", "3"}) {
		t.Errorf("the most: %q", most)
	}
	l.Sample(s, "memory", 11, 10)
	v.want(t, "memory: 11, the limit is 10")
	l.Sample(s, "memory", 11, 10)
	if len(v) != 1 {
		t.Errorf("verdicts %q, want each value once", v)
	}
	v = nil
	l.Sample(s, "sockets", -1, 10)
	v.want(t, "sockets: -1")
}

func TestLiveness(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(l *Liveness)
	}{
		{"it comes", "", func(l *Liveness) { w := l.Begin(s, "a dial"); l.Calm(s); w.Over(); l.Check(60 * s) }},
		{"a fault may hinder it for ever", "", func(l *Liveness) { l.Begin(s, "a dial"); l.Check(1000 * s) }},
		{"it has its time from when faults stop", "", func(l *Liveness) { l.Begin(s, "a dial"); l.Calm(100 * s); l.Check(109 * s) }},
		{"it has its time from its beginning", "", func(l *Liveness) { l.Calm(0); l.Begin(100*s, "a dial"); l.Check(109 * s) }},
		{"a fault again", "", func(l *Liveness) {
			l.Calm(0)
			l.Begin(s, "a dial")
			l.Disturbed()
			l.Check(100 * s)
			l.Calm(100 * s)
			l.Check(105 * s)
		}},
		{"it may take longer than others", "", func(l *Liveness) {
			w := l.BeginFor(s, "a dial", 20*s)
			l.Calm(0)
			l.Check(20 * s)
			w.Over()
		}},
		{"it may take less", "a close is outstanding", func(l *Liveness) { l.Calm(0); l.BeginFor(s, "a close", 2*s); l.Check(4 * s) }},
		{"it does not come", "a dial is outstanding", func(l *Liveness) { l.Begin(s, "a dial"); l.Calm(2 * s); l.Check(13 * s) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Liveness{Fail: v.fail, Within: 10 * s}
			c.do(l)
			v.want(t, c.want)
			l.Check(2000 * s)
			if c.want != "" && len(v) != 1 {
				t.Errorf("verdicts %q, want one", v)
			}
		})
	}
	l := &Liveness{}
	l.Begin(s, "a").Over()
	l.Begin(s, "b")
	if got := l.Outstanding(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("outstanding %q, want b", got)
	}
	(*Wait)(nil).Over()
}

func TestIsolation(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(b *Behaved)
	}{
		{"gets what it wants", "", func(b *Behaved) { b.Wants(s, 2); b.Gets(9*s, 1); b.Gets(18*s, 1); b.l.Check(100 * s) }},
		{"wants nothing", "", func(b *Behaved) { b.l.Check(100 * s); b.Wants(100*s, 1); b.l.Check(105 * s) }},
		{"starves", "gets nothing since 9s", func(b *Behaved) { b.Wants(s, 2); b.Gets(9*s, 1); b.l.Check(20 * s); b.l.Check(30 * s) }},
		{"has starved", "gets nothing since 1s", func(b *Behaved) { b.Wants(s, 1); b.Gets(12*s, 1) }},
		{"ends", "and has ended: reset", func(b *Behaved) { b.Ended(s, "reset") }},
		{"ends because it wants", "", func(b *Behaved) { b.Wants(s, 1); b.Excuse(); b.Ended(s, "closed"); b.l.Check(100 * s) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Isolation{Fail: v.fail, Within: 10 * s}
			c.do(l.Behaved("innocent"))
			v.want(t, c.want)
			if len(v) > 1 {
				t.Errorf("verdicts %q, want one at most", v)
			}
		})
	}
}

func TestEnd(t *testing.T) {
	var v verdicts
	l := &End{Fail: v.fail}
	l.Left("host1", "objects")
	l.Count("host1", "identifiers", 0)
	l.Shutdown("host1", nil)
	v.want(t, "")
	l.Left("host1", "object", "2 queue pairs on mem0")
	l.Count("host1", "identifiers", 1)
	l.Shutdown("host1", errors.New("the device still holds id 3"))
	want := verdicts{"left of host1: object: 2 queue pairs on mem0", "left of host1: 1 identifiers", "left of host1: the device still holds id 3"}
	if !slices.Equal(v, want) {
		t.Errorf("verdicts %q, want %q", v, want)
	}
}
