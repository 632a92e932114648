package oracle

import "testing"

func TestFates(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(k *Link)
	}{
		{"delivered", "", func(k *Link) {
			k.Up(s, 1)
			tag, p := k.Submit(20, true, false)
			k.l.Arrivals().Received(s, p)
			k.Fate(s, tag, WasDelivered, false)
			k.Down(s, 1, true)
			k.Closed(s, 1)
		}},
		{"repeated, and received twice", "", func(k *Link) {
			tag, p := k.Submit(20, true, true)
			k.l.Arrivals().Received(s, p)
			k.Fate(s, tag, WasUnknown, true)
			k.l.Arrivals().Received(s, p)
			k.Fate(s, tag, WasDelivered, false)
			k.Closed(s, 1)
		}},
		{"sent when it was gone", "", func(k *Link) {
			k.Closed(s, 0)
			k.Submit(20, true, false)
			k.Late()
		}},
		{"refused", "", func(k *Link) {
			tag, _ := k.Submit(20, true, false)
			k.Submit(20, false, false)
			k.Refused(s, tag)
			k.Refused(s, 0)
			k.Closed(s, 0)
		}},
		{"delivered to nobody", "nobody has received it", func(k *Link) {
			tag, _ := k.Submit(20, true, false)
			k.Fate(s, tag, WasDelivered, false)
		}},
		{"unsent and received", "reported as unsent, and was received", func(k *Link) {
			tag, p := k.Submit(20, true, false)
			k.l.Arrivals().Received(s, p)
			k.Fate(s, tag, WasUnsent, true)
		}},
		{"received after it was unsent", "was reported as unsent", func(k *Link) {
			tag, p := k.Submit(20, true, false)
			k.Fate(s, tag, WasUnsent, false)
			k.l.Arrivals().Received(s, p)
		}},
		{"received after it was refused", "and was refused", func(k *Link) {
			tag, p := k.Submit(20, true, false)
			k.Refused(s, tag)
			k.l.Arrivals().Received(s, p)
		}},
		{"received twice", "received 2 times", func(k *Link) {
			_, p := k.Submit(20, true, false)
			k.l.Arrivals().Received(s, p)
			k.l.Arrivals().Received(s, p)
		}},
		{"repeated without leave", "which nobody allows", func(k *Link) {
			tag, _ := k.Submit(20, true, false)
			k.Fate(s, tag, WasUnknown, true)
		}},
		{"out of order", "after message 2 on one connection", func(k *Link) {
			_, p := k.Submit(20, true, false)
			_, q := k.Submit(20, true, false)
			a := k.l.Arrivals()
			a.Received(s, q)
			a.Received(s, p)
		}},
		{"a wrong byte", "as 20 other ones", func(k *Link) {
			_, p := k.Submit(20, true, false)
			p[19]++
			k.l.Arrivals().Received(s, p)
		}},
		{"nonsense", "nobody has sent", func(k *Link) { k.l.Arrivals().Received(s, []byte("nonsense")) }},
		{"two fates", "another fate", func(k *Link) {
			tag, _ := k.Submit(20, true, false)
			k.Fate(s, tag, WasUnknown, false)
			k.Fate(s, tag, WasUnsent, false)
		}},
		{"no fate", "have had no fate", func(k *Link) {
			k.Submit(20, true, false)
			k.Closed(s, 1)
		}},
		{"counted wrong", "counts 0 messages, and 1 were accepted", func(k *Link) {
			k.Submit(20, false, false)
			k.Closed(s, 0)
		}},
		{"up twice", "generation 2 is up", func(k *Link) {
			k.Up(s, 1)
			k.Up(s, 2)
		}},
		{"an old generation", "generation 1 is up", func(k *Link) {
			k.Up(s, 1)
			k.Down(s, 1, true)
			k.Up(s, 1)
		}},
		{"down that was never up", "was up: true", func(k *Link) { k.Down(s, 1, true) }},
		{"a message while down", "no connection", func(k *Link) { k.Got(s) }},
		{"closed twice", "is closed", func(k *Link) {
			k.Closed(s, 0)
			k.Closed(s, 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Fates{Fail: v.fail}
			c.do(l.Link("a to b"))
			l.End(s)
			v.want(t, c.want)
		})
	}
}
