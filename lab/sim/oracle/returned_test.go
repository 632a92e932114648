package oracle

import "testing"

func TestReturned(t *testing.T) {
	const what = "bytes of the pool send"
	for _, c := range []struct {
		name, want string
		over       bool
		do         func(l *Returned) bool
	}{
		{"nothing is held", "", true, func(l *Returned) bool { return l.Look(s, "host1", nil) }},
		{"all of it is owed", "", true, func(l *Returned) bool { return l.Look(s, "host1", []Held{{what, 7, 7}}) }},
		{"it is still returned", "", false, func(l *Returned) bool {
			return l.Look(0, "host1", []Held{{what, 7, 0}}) || l.Look(9*s, "host1", []Held{{what, 1, 0}})
		}},
		{"it has been returned", "", true, func(l *Returned) bool {
			return !l.Look(s, "host1", []Held{{what, 7, 0}}) && l.Look(20*s, "host1", []Held{{what, 0, 0}})
		}},
		{"it stays", "host1 has not returned everything, 10s after the last of it was used: 7 " + what + ", want 0", true, func(l *Returned) bool {
			return !l.Look(s, "host1", []Held{{what, 7, 0}}) && l.Look(11*s, "host1", []Held{{what, 7, 0}, {"messages", 1, 1}})
		}},
		{"more was returned than was taken", "-1 places, want 0", true, func(l *Returned) bool {
			return !l.Look(s, "host1", []Held{{"places", -1, 0}}) && l.Look(11*s, "host1", []Held{{"places", -1, 0}})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			if over := c.do(&Returned{Fail: v.fail, Within: 10 * s}); over != c.over {
				t.Errorf("over: %t, want %t", over, c.over)
			}
			v.want(t, c.want)
		})
	}
}
