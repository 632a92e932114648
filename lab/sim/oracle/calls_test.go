package oracle

import (
	"testing"
	"time"
)

// due is when the calls of these tests must have ended.
const due = 10 * s

func TestCalls(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(l *Calls, c *Call) // c ends within 10 s: 20 bytes for 30
	}{
		{"answered", "", func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due).Returns("")
			c.Answered(2*s, c.Reply())
		}},
		{"answered by nobody", "executed 0 times", func(_ *Calls, c *Call) { c.Answered(s, c.Reply()) }},
		{"another answer", "byte 9 of its answer", func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due).Returns("")
			p := c.Reply()
			p[9]++
			c.Answered(s, p)
		}},
		{"another call's answer", "gets the answer of b", func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due).Returns("")
			c.Answered(s, l.Call("b", 20, 30, 0, false).Reply())
		}},
		{"an error", "", func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due).Returns("code 300")
			c.Refused(2*s, "code 300")
		}},
		{"another error", `as if its handler had returned "code 301"`, func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due).Returns("code 300")
			c.Refused(2*s, "code 301")
		}},
		{"nonsense is executed", "nobody has sent", func(l *Calls, _ *Call) { l.Begins(s, []byte("nonsense"), 0) }},
		{"a wrong byte is executed", "byte 19 of its request", func(l *Calls, c *Call) {
			p := c.Request()
			p[19]++
			l.Begins(s, p, due)
		}},
		{"executed twice", "executed 2 times", func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due)
			l.Begins(s, c.Request(), due)
		}},
		{"executed, and reported as not", "was executed 1 times", func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due)
			c.NotExecuted(2 * s)
		}},
		{"reported as not executed, and executed", "is executed, and was reported", func(l *Calls, c *Call) {
			c.NotExecuted(s)
			l.Begins(2*s, c.Request(), due)
		}},
		{"unknown", "", func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due)
			c.Unknown(2 * s)
		}},
		{"two outcomes", "another outcome", func(_ *Calls, c *Call) {
			c.Unknown(s)
			c.Unknown(2 * s)
		}},
		{"a late outcome", "no outcome, and its deadline was 10s", func(_ *Calls, c *Call) { c.Unknown(12 * s) }},
		{"no outcome", "no outcome, and its deadline was 10s", func(l *Calls, _ *Call) { l.Check(12 * s) }},
		{"its caller's machine is late", "", func(l *Calls, c *Call) {
			c.Slow()
			l.Check(100 * s)
			c.Unknown(100 * s)
		}},
		{"its caller's process was killed", "", func(l *Calls, c *Call) {
			l.Begins(s, c.Request(), due).Lost()
			c.Gone()
			l.Check(100 * s)
		}},
		{"executed after its deadline", "its caller was waiting until 10s", func(l *Calls, c *Call) { l.Begins(13*s, c.Request(), 12*s) }},
		{"executed after its handler's deadline", "begins 2s after its own deadline", func(l *Calls, c *Call) { l.Begins(12*s, c.Request(), due) }},
		{"its handler has too much time", "has time until 13s", func(l *Calls, c *Call) { l.Begins(s, c.Request(), 13*s) }},
		{"its handler has no deadline", "its handler has no deadline", func(l *Calls, c *Call) { l.Begins(s, c.Request(), 0) }},
		{"executed when its caller has gone", "its caller has gone at 1s", func(l *Calls, c *Call) {
			c.Unknown(s)
			l.Begins(4*s, c.Request(), due)
		}},
		{"executed late because of a fault", "", func(l *Calls, c *Call) {
			c.Far()
			l.Begins(13*s, c.Request(), 12*s)
			c.Unknown(due)
		}},
		{"its handler learns late that its caller has gone", "learns now", func(l *Calls, c *Call) {
			x := l.Begins(s, c.Request(), due)
			c.Unknown(2 * s)
			x.Noticed(5 * s)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Calls{Fail: v.fail, Late: s, Transit: 2 * s}
			c.do(l, l.Call("a", 20, 30, due, false))
			v.want(t, c.want)
		})
	}
}

func TestCallsEnd(t *testing.T) {
	var v verdicts
	l := &Calls{Fail: v.fail, Late: s, Transit: s}
	a, b := l.Call("a", 8, 8, 0, false), l.Call("b", 8, 8, 0, true)
	l.Begins(s, a.Request(), 0)
	l.Begins(s, b.Request(), 0).Returns("")
	l.Begins(s, b.Request(), 0).Returns("")
	b.Answered(time.Hour, b.Reply())
	if r := l.Running(); len(r) != 1 || r[0] != "a" {
		t.Errorf("%q run, want a: b's handlers have returned", r)
	}
	l.End(time.Hour)
	v.want(t, "1 calls have no outcome: [a]")
}

func TestItems(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(i *Items) // the window is 100 bytes, and an item has a header of 10 bytes
	}{
		{"in order", "", func(i *Items) {
			a, b := i.Sending(s, 20), i.Sending(s, 0)
			i.Sent(s)
			i.Sent(s)
			i.Item(s, a)
			i.Finished("")
			i.Item(s, b)
			i.Ended(s, "")
		}},
		{"received before it is accepted", "", func(i *Items) {
			i.Item(s, i.Sending(s, 20))
			i.Sent(s)
		}},
		{"out of order", "of item 0 is wrong", func(i *Items) {
			i.Sending(s, 20)
			i.Item(s, i.Sending(s, 20))
		}},
		{"twice", "and 1 were sent", func(i *Items) {
			a := i.Sending(s, 20)
			i.Item(s, a)
			i.Item(s, a)
		}},
		{"cut off", "item 0 has 19 bytes", func(i *Items) { i.Item(s, i.Sending(s, 20)[:19]) }},
		{"lost", "after 0 items, and 1 were sent", func(i *Items) {
			i.Sending(s, 20)
			i.Sent(s)
			i.Finished("")
			i.Ended(s, "")
		}},
		{"ends by itself", "its sender goes on", func(i *Items) { i.Ended(s, "") }},
		{"another direction", "of item 0 is wrong", func(i *Items) {
			i.Sending(s, 20)
			i.Item(s, i.c.Uploads(100, 10).Sending(s, 20))
		}},
		{"another end", `received as "", and was "code 300"`, func(i *Items) {
			i.Finished("code 300")
			i.Ended(s, "")
		}},
		{"too much", "whose window is 100", func(i *Items) {
			for range 5 {
				i.Sending(s, 60)
				i.Sent(s)
			}
		}},
		{"an item beyond the window", "", func(i *Items) {
			i.Sending(s, 80)
			i.Sent(s)
			i.Sending(s, 500)
			i.Sent(s)
		}},
		{"behind the end", "after its end", func(i *Items) {
			i.Finished("")
			i.Sending(s, 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Calls{Fail: v.fail}
			c.do(l.Call("a", 8, 8, 0, false).Items(100, 10))
			v.want(t, c.want)
		})
	}
}
