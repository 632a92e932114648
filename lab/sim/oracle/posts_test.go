package oracle

import "testing"

// town is two nodes with an actor each. The second one's actor is exposed; a further one there is
// not.
type town struct {
	l    *Posts
	a, b *Life
}

// The places of a town.
var (
	there  = Place{"b", "target"}
	hidden = Place{"b", "hidden"}
	home   = Place{"a", "asker"}
)

func newTown(fail Fail) *town {
	l := &Posts{Fail: fail}
	t := &town{l, l.Life("a"), l.Life("b")}
	t.a.Begins(0, home.Name)
	t.b.Begins(0, there.Name)
	t.b.Begins(0, hidden.Name)
	t.b.Expose(0, there.Name, true)
	return t
}

// send enters a message of a to the target.
func (t *town) send() *Post { return t.sendTo(there) }

func (t *town) sendTo(to Place) *Post {
	return t.a.Submit(s, Spec{To: to, Sender: home.Name, Stream: home.Name, Length: 20})
}

func (t *town) ask() *Post {
	p := t.a.Ask(s, Spec{To: there, Stream: "asks", Length: 20})
	p.Asked("future")
	return p
}

// answer enters that a life of b sends a message to the asker, which receives it.
func (t *town) answer(by *Life) {
	p := by.Submit(4*s, Spec{To: home, Stream: there.Name, Length: 20})
	t.a.Received(5*s, home.Name, p.Bytes())
}

// get enters that the target receives it.
func (t *town) get(p *Post) { t.b.Received(2*s, p.spec.To.Name, p.Bytes()) }

func TestPosts(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(t *town)
	}{
		{"received", "", func(t *town) { t.get(t.send()) }},
		{"by a grant", "", func(t *town) {
			t.get(t.send())
			t.answer(t.b)
		}},
		{"by a grant to the life before", "neither exposed nor granted", func(t *town) {
			t.get(t.send())
			t.b.Over(3 * s)
			t.answer(t.l.Life("b"))
		}},
		{"by a message that has waited for the next life", "", func(t *town) {
			t.get(t.send())
			t.send()
			t.b.Over(3 * s)
			t.answer(t.l.Life("b"))
		}},
		{"by a grant for what was spawned", "", func(t *town) {
			t.a.Grant(t.b, home.Name)
			t.answer(t.b)
		}},
		{"by one for the life before", "neither exposed nor granted", func(t *town) {
			t.a.Grant(t.b, home.Name)
			t.b.Over(3 * s)
			t.answer(t.l.Life("b"))
		}},
		{"a dead letter", "", func(t *town) { t.a.DeadLetter(s, there, t.send().Bytes()) }},
		{"a dead letter of the other node", "", func(t *town) { t.b.DeadLetter(s, there, t.send().Bytes()) }},
		{"refused there", "", func(t *town) {
			t.sendTo(hidden)
			t.b.Refused(s, hidden.Name, home, true)
		}},
		{"refused for a queue", "", func(t *town) {
			t.send()
			t.a.Full(s, home.Name, there)
		}},
		{"unknown", "", func(t *town) {
			t.send()
			t.a.Cut(2*s, "b", 1)
		}},
		{"one refused, and one unknown that was sent before the end", "", func(t *town) {
			t.send()
			t.a.Cut(2*s, "b", 1)
			t.a.Submit(3*s, Spec{To: there, Sender: home.Name, Length: 20})
			t.b.Refused(4*s, there.Name, home, false)
		}},
		{"not reported by its node", "", func(t *town) { t.send(); t.a.Gap(2*s, "b", 1) }},
		{"not reported by its target's node", "", func(t *town) { t.send(); t.b.Gap(2*s, "a", 1) }},
		{"unknown, and received", "", func(t *town) {
			p := t.send()
			t.a.Cut(s, "b", 1)
			t.get(p)
		}},
		{"gone with its sender", "", func(t *town) { t.send(); t.a.Over(2 * s) }},
		{"gone with its target", "", func(t *town) { t.send(); t.b.Over(2 * s) }},
		{"gone with a silent mailbox", "", func(t *town) { t.send(); t.b.Stops(2*s, there.Name, true) }},
		{"what a life that is over says does not count", "", func(t *town) {
			p := t.send()
			t.b.Over(s)
			t.get(p)
			t.get(p)
			t.b.DeadLetter(s, there, p.Bytes())
			t.b.Refused(s, there.Name, home, true)
			t.b.Cut(s, "a", 1)
			t.b.Terminated(s, "nobody", home, HasStopped, true)
			t.a.Over(s)
			t.a.Full(s, home.Name, there)
			p.Fate(s, WasAnswered)
		}},
		{"granted", "", func(t *town) {
			t.get(t.sendTo(there))
			p := t.b.Submit(s, Spec{To: home, Length: 20})
			t.a.Received(s, home.Name, p.Bytes())
		}},
		{"concealed when it was under way", "", func(t *town) {
			p := t.send()
			t.b.Expose(s+1, there.Name, false)
			t.get(p)
		}},
		{"forwarded", "", func(t *town) {
			p := t.send()
			t.get(p)
			q := t.b.Forward(s, p, there.Name, home)
			t.a.Received(s, home.Name, q.Bytes())
		}},
		{"asked and answered", "", func(t *town) { p := t.ask(); t.get(p); p.Fate(s, WasAnswered) }},
		{"answered too late", "", func(t *town) {
			p := t.ask()
			t.get(p)
			p.Fate(2*s, WasLate)
			t.b.Submit(3*s, Spec{To: Place{"a", "future"}, Length: 20})
		}},
		{"something that answers nobody is refused", "", func(t *town) { t.b.Refused(s, there.Name, Place{}, false) }},
		{"asked, forwarded, and answered by a third node", "", func(t *town) {
			c := t.l.Life("c")
			c.Begins(0, there.Name)
			c.Expose(0, there.Name, true)
			p := t.ask()
			t.get(p)
			q := t.b.Forward(s, p, there.Name, Place{"c", there.Name})
			c.Received(s, there.Name, q.Bytes())
			a := c.Submit(s, Spec{To: Place{"a", "future"}, Length: 20})
			t.a.Received(s, "future", a.Bytes())
			p.Fate(s, WasAnswered)
		}},
		{"refused because it claims to be of that node", "", func(t *town) {
			p := t.send()
			t.get(p)
			t.a.Expose(0, home.Name, true)
			t.b.Forward(s, p, there.Name, home)
			t.a.Refused(s, home.Name, home, true)
		}},
		{"asked in vain", "", func(t *town) { t.ask().Fate(s, WasUnsure) }},
		{"asked, and a dead letter there", "", func(t *town) {
			p := t.ask()
			t.b.DeadLetter(s, there, p.Bytes())
			p.Fate(s, WasDead)
		}},
		{"refused without an asker beside what nobody knows of another node", "", func(t *town) {
			c := t.l.Life("c")
			for _, from := range []*Life{c, t.a, c, c} {
				from.Submit(s, Spec{To: hidden, Stream: "posts", Length: 20})
			}
			c.Cut(2*s, "b", 2)
			t.b.Refused(s, hidden.Name, Place{}, true)
			t.b.Refused(s, hidden.Name, Place{}, true)
		}},

		{"refused without an asker, and one more lost", "neither received nor reported", func(t *town) {
			for range 2 {
				t.a.Submit(s, Spec{To: hidden, Stream: "posts", Length: 20})
			}
			t.b.Refused(s, hidden.Name, Place{}, true)
		}},
		{"lost", "neither received nor reported", func(t *town) { t.send() }},
		{"lost after the end that is reported", "neither received nor reported", func(t *town) {
			t.a.Cut(0, "b", 1)
			t.send()
		}},
		{"more lost than reported", "and 1 later ones are neither", func(t *town) {
			t.send()
			t.send()
			t.a.Cut(2*s, "b", 1)
		}},
		{"lost when its sender ends in order", "neither received nor reported", func(t *town) { t.send(); t.a.Ended(2 * s) }},
		{"received twice", "is received twice", func(t *town) { p := t.send(); t.get(p); t.get(p) }},
		{"out of order", "is received after post 1", func(t *town) {
			p, q := t.send(), t.send()
			t.get(q)
			t.get(p)
		}},
		{"a wrong byte", "other bytes", func(t *town) {
			b := t.send().Bytes()
			b[19]++
			t.b.Received(s, there.Name, b)
		}},
		{"nonsense", "nobody has sent it", func(t *town) { t.b.Received(s, there.Name, []byte("nonsense, and more of it")) }},
		{"too short", "nobody has sent it", func(t *town) { t.b.Received(s, there.Name, []byte("short")) }},
		{"received by another actor", "nobody has sent it", func(t *town) { t.b.Received(s, hidden.Name, t.send().Bytes()) }},
		{"not exposed", "neither exposed nor granted", func(t *town) { t.get(t.sendTo(hidden)) }},
		{"concealed long ago", "neither exposed nor granted", func(t *town) {
			t.b.Expose(0, there.Name, false)
			t.get(t.send())
		}},
		{"cannot be encoded, and is received", "cannot be encoded", func(t *town) {
			t.get(t.a.Submit(s, Spec{To: there, Length: 20, Bad: true}))
		}},
		{"a dead letter that was received", "and was received", func(t *town) {
			p := t.send()
			t.get(p)
			t.a.DeadLetter(s, there, p.Bytes())
		}},
		{"received after it was a dead letter", "was reported not to be", func(t *town) {
			p := t.send()
			t.a.DeadLetter(s, there, p.Bytes())
			t.get(p)
		}},
		{"a dead letter twice", "a dead letter twice", func(t *town) {
			p := t.send()
			t.a.DeadLetter(s, there, p.Bytes())
			t.a.DeadLetter(s, there, p.Bytes())
		}},
		{"a dead letter of nobody", "nobody has sent", func(t *town) { t.a.DeadLetter(s, there, []byte("nonsense")) }},
		{"a dead letter of a stranger", "nothing to do with it", func(t *town) {
			t.l.Life("c").DeadLetter(s, there, t.send().Bytes())
		}},
		{"a dead letter that was refused", "0 of them were neither", func(t *town) {
			p := t.send()
			t.a.Full(s, home.Name, there)
			t.a.DeadLetter(s, there, p.Bytes())
		}},
		{"refused for a queue, and nothing was sent", "0 of them were neither", func(t *town) { t.a.Full(s, home.Name, there) }},
		{"refused for a queue, and received", "0 of them were neither", func(t *town) {
			p := t.send()
			t.a.Full(s, home.Name, there)
			t.get(p)
		}},
		{"refused too often", "0 of them were neither received nor dead", func(t *town) {
			t.get(t.send())
			t.b.Refused(s, there.Name, home, false)
		}},
		{"refused although it is exposed", "which is exposed", func(t *town) {
			t.send()
			t.b.Refused(s, there.Name, home, true)
		}},
		{"answered and not received", "was not received", func(t *town) { t.ask().Fate(s, WasAnswered) }},
		{"dead, and received", "and it was received", func(t *town) { p := t.ask(); t.get(p); p.Fate(s, WasDead) }},
		{"received after its future knew better", "was reported not to be", func(t *town) {
			p := t.ask()
			p.Fate(s, WasRefused)
			t.get(p)
		}},
		{"two fates", "has got unknown, and then a time-out", func(t *town) {
			p := t.ask()
			p.Fate(s, WasUnsure)
			p.Fate(s, WasLate)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			w := newTown(v.fail)
			c.do(w)
			w.l.End(10 * s)
			v.want(t, c.want)
		})
	}
}

func TestWatches(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(t *town)
	}{
		{"it is there", "", func(t *town) { t.a.Watch(s, "x", there, true) }},
		{"it stops", "", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.b.Stops(2*s, there.Name, false)
			t.a.Terminated(3*s, "x", there, HasStopped, true)
		}},
		{"it is not there", "", func(t *town) {
			t.a.Watch(s, "x", Place{"b", "nobody"}, true)
			t.a.Terminated(2*s, "x", Place{"b", "nobody"}, IsNotFound, true)
		}},
		{"it may not be watched", "", func(t *town) {
			t.a.Watch(s, "x", hidden, false)
			t.a.Terminated(2*s, "x", hidden, IsNotFound, true)
		}},
		{"its node is gone", "", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.b.Over(2 * s)
			t.a.Terminated(3*s, "x", there, IsUnreachable, false)
		}},
		{"taken back when it was under way", "", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.b.Stops(2*s, there.Name, false)
			t.a.Unwatch("x", there)
			t.a.Terminated(3*s, "x", there, HasStopped, true)
		}},
		{"the watcher is gone", "", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.a.Forget("x")
			t.b.Stops(2*s, there.Name, false)
		}},
		{"there are another life and another connection meanwhile", "", func(t *town) {
			t.b.Over(s)
			t.a.Watch(2*s, "x", there, true)
			t.a.Cut(2*s, "b", 0)
			t.l.Life("b").Begins(3*s, there.Name)
		}},
		{"again", "", func(t *town) {
			for range 2 {
				t.a.Watch(s, "x", there, true)
				t.b.Stops(2*s, there.Name, false)
				t.a.Terminated(3*s, "x", there, HasStopped, true)
			}
		}},

		{"nobody watches", "does not watch it", func(t *town) { t.a.Terminated(s, "x", there, HasStopped, true) }},
		{"twice", "or was notified before", func(t *town) {
			t.a.Watch(s, "x", there, true)
			if t.a.Watch(s, "x", there, true) {
				t.l.Fail("it watches twice")
			}
			t.b.Stops(2*s, there.Name, false)
			t.a.Terminated(3*s, "x", there, HasStopped, true)
			t.a.Terminated(3*s, "x", there, HasStopped, true)
		}},
		{"not found, and it is there", "it was there since", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.a.Terminated(2*s, "x", there, IsNotFound, true)
		}},
		{"stopped, and it goes on", "it has not since", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.a.Terminated(2*s, "x", there, HasStopped, true)
		}},
		{"unreachable without a reason", "nothing has disturbed", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.a.Terminated(2*s, "x", there, IsUnreachable, true)
		}},
		{"not notified of the end", "watchers were not notified", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.b.Stops(2*s, there.Name, false)
		}},
		{"not notified of nobody", "watchers were not notified", func(t *town) { t.a.Watch(s, "x", hidden, false) }},
		{"not notified of the end of a node", "watchers were not notified", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.b.Over(2 * s)
			t.l.Life("b")
		}},
		{"not notified of the end of a connection", "watchers were not notified", func(t *town) {
			t.a.Watch(s, "x", there, true)
			t.a.Cut(3*s, "b", 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			w := newTown(v.fail)
			c.do(w)
			w.l.End(10 * s)
			v.want(t, c.want)
		})
	}
}
