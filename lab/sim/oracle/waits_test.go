package oracle

import "testing"

func TestBounds(t *testing.T) {
	var v verdicts
	l := &Bounds{Fail: v.fail}
	l.Sample(s, "timers", 3, 0)
	l.Sample(s, "memory", 10, 10)
	l.Sample(s, "memory", 4, 10)
	v.want(t, "")
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
		{"it comes", "", func(l *Liveness) { l.Begin(s, "a dial", 10*s).Over(); l.Check(60 * s) }},
		{"it has its time", "", func(l *Liveness) { w := l.Begin(s, "a dial", 20*s); l.Check(21 * s); w.Over() }},
		{"it does not come", "a close is outstanding", func(l *Liveness) { l.Begin(s, "a close", 2*s); l.Check(4 * s) }},
		{"another one comes", "b is outstanding", func(l *Liveness) { l.Begin(s, "a", s).Over(); l.Begin(s, "b", s); l.Check(4 * s) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Liveness{Fail: v.fail}
			c.do(l)
			v.want(t, c.want)
			l.Check(2000 * s)
			if c.want != "" && len(v) != 1 {
				t.Errorf("verdicts %q, want one", v)
			}
		})
	}
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
