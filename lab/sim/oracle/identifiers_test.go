package oracle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/states"
)

// dialled enters a connected identifier, as its owner sees it.
func dialled(l *Identifiers) {
	l.Made("a", states.IWARP, false)
	for _, step := range [][2]states.State{
		{states.Idle, states.AddrQuery},
		{states.AddrQuery, states.AddrResolved},
		{states.AddrResolved, states.RouteQuery},
		{states.RouteQuery, states.RouteResolved},
		{states.RouteResolved, states.Connecting},
		{states.Connecting, states.Connected},
	} {
		l.Transition(s, "a", 1, step[0], step[1])
	}
	l.Event(s, "a", states.KindEstablished)
	l.Heard(s, "owner", "a", states.KindEstablished)
}

// ended enters the orderly end of that.
func ended(l *Identifiers) {
	l.Transition(s, "a", 1, states.Connected, states.Timewait)
	l.Event(s, "a", states.KindDisconnected)
	l.Heard(s, "owner", "a", states.KindDisconnected)
	closed(l)
}

func closed(l *Identifiers) {
	l.Transition(s, "a", 1, l.ids["a"].now, states.Destroying)
	l.Event(s, "a", states.KindClosed)
	l.Heard(s, "owner", "a", states.KindClosed)
}

func TestIdentifiers(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(l *Identifiers)
	}{
		{"a connection that ends in order", "", func(l *Identifiers) { dialled(l); ended(l) }},
		{"a child", "", func(l *Identifiers) {
			l.Made("a", states.IWARP, true)
			l.Event(s, "a", states.KindConnectRequest)
			l.Transition(s, "a", 1, states.ConnectRequested, states.Accepting)
			closed(l)
		}},
		{"a dial's second address", "", func(l *Identifiers) {
			l.Made("a", states.IWARP, false)
			l.Transition(s, "a", 1, states.Idle, states.AddrQuery)
			l.Transition(s, "a", 2, states.Destroying, states.Idle)
			l.Transition(s, "a", 2, states.Idle, states.AddrQuery)
			closed(l)
		}},
		{"a step that the table does not have", "which no command and no event does", func(l *Identifiers) {
			l.Made("a", states.IWARP, false)
			l.Transition(s, "a", 1, states.Idle, states.Connected)
		}},
		{"back from timewait", "which no command and no event does", func(l *Identifiers) {
			dialled(l)
			l.Transition(s, "a", 1, states.Connected, states.Timewait)
			l.Transition(s, "a", 1, states.Timewait, states.Connected)
		}},
		{"a state that it was not in", "and was in connected", func(l *Identifiers) {
			dialled(l)
			l.Transition(s, "a", 1, states.Idle, states.Bound)
		}},
		{"an event that the state does not have", "where the state machine has none", func(l *Identifiers) {
			l.Made("a", states.IWARP, false)
			l.Event(s, "a", states.KindEstablished)
		}},
		{"a request that comes late", "where the state machine has none", func(l *Identifiers) {
			dialled(l)
			l.Event(s, "a", states.KindConnectRequest)
		}},
		{"established twice", "which it has sent before", func(l *Identifiers) {
			dialled(l)
			l.Heard(s, "owner", "a", states.KindEstablished)
		}},
		{"disconnected twice", "reported its end before", func(l *Identifiers) {
			dialled(l)
			l.Heard(s, "owner", "a", states.KindDisconnected)
			l.Heard(s, "owner", "a", states.KindDisconnected)
		}},
		{"disconnected and removed", "reported its end before", func(l *Identifiers) {
			dialled(l)
			l.Heard(s, "owner", "a", states.KindDisconnected)
			l.Heard(s, "owner", "a", states.KindDeviceRemoval)
		}},
		{"disconnected and removed, with an owner that drives it", "", func(l *Identifiers) {
			dialled(l)
			l.Manual("a")
			l.Heard(s, "owner", "a", states.KindDisconnected)
			l.Heard(s, "owner", "a", states.KindDeviceRemoval)
			closed(l)
		}},
		{"a message after the end", "a message from a after its end", func(l *Identifiers) {
			dialled(l)
			l.Heard(s, "owner", "a", states.KindDisconnected)
			l.Heard(s, "owner", "a", states.KindReceived)
		}},
		{"closed twice", "after Closed", func(l *Identifiers) { dialled(l); ended(l); l.Heard(s, "owner", "a", states.KindClosed) }},
		{"closed to two owners", "which it has sent before", func(l *Identifiers) { dialled(l); ended(l); l.Heard(s, "other", "a", states.KindClosed) }},
		{"something after closed", "after Closed", func(l *Identifiers) { dialled(l); ended(l); l.Heard(s, "owner", "a", states.KindSent) }},
		{"sends something after closed", "after Closed", func(l *Identifiers) { dialled(l); ended(l); l.Event(s, "a", states.KindSent) }},
		{"moves after closed", "after Closed", func(l *Identifiers) {
			dialled(l)
			ended(l)
			l.Transition(s, "a", 1, states.Destroying, states.Idle)
		}},
		{"never closed", "was never Closed", func(l *Identifiers) { dialled(l) }},
		{"closed, and its owner does not know", "has not got its Closed", func(l *Identifiers) {
			dialled(l)
			l.Event(s, "a", states.KindClosed)
		}},
		{"closed, and its owner has stopped", "", func(l *Identifiers) {
			dialled(l)
			l.Event(s, "a", states.KindClosed)
			l.Orphan("a")
		}},
		{"a request that its owner has not received before it stopped", "", func(l *Identifiers) {
			l.Made("a", 0, true)
			l.Child("a", "listener")
			l.Event(s, "a", states.KindClosed)
			l.Event(s, "listener", states.KindClosed)
			l.Orphan("listener")
		}},
		{"a request of a listener whose owner lives", "the owner of a has not got", func(l *Identifiers) {
			l.Made("a", 0, true)
			l.Child("a", "listener")
			l.Event(s, "a", states.KindClosed)
			l.MootAll("listener")
		}},
		{"killed", "", func(l *Identifiers) { dialled(l); l.Asked(s, "a", "close"); l.MootAll("a") }},
		{"an answer", "", func(l *Identifiers) { l.Answered(s, l.Asked(s, "a", "dial"), "Established"); l.MootAll("a") }},
		{"no answer", "was never answered", func(l *Identifiers) { l.Asked(s, "a", "dial") }},
		{"two answers", "is answered more than once", func(l *Identifiers) {
			q := l.Asked(s, "a", "dial")
			l.Answered(s, q, "Rejected")
			l.Answered(s, q, "Established")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Identifiers{Fail: v.fail}
			c.do(l)
			l.End(2 * s)
			v.want(t, c.want)
		})
	}
}

func TestUnanswered(t *testing.T) {
	var v verdicts
	l := &Identifiers{Fail: v.fail}
	l.Answered(s, l.Asked(s, "a", "dial"), "Established")
	l.Asked(2*s, "a", "close")
	if got := l.Unanswered(3 * s); len(got) != 1 || got[0] != "close to a" {
		t.Errorf("unanswered %q, want the close", got)
	}
	if got := l.Unanswered(2 * s); len(got) != 0 {
		t.Errorf("unanswered before the close: %q", got)
	}
}

// A loop may still refuse an identifier that its owner has requested, and about which it has
// already entered something.
func TestLivingAreMade(t *testing.T) {
	l := &Identifiers{Fail: t.Errorf}
	l.Manual("a")
	if n := l.Living(""); n != 0 {
		t.Errorf("%d identifiers before their loop has begun with one", n)
	}
	dialled(l)
	if n := l.Living(""); n != 1 {
		t.Errorf("%d identifiers when one has connected", n)
	}
	ended(l)
	if n := l.Living(""); n != 0 {
		t.Errorf("%d identifiers when all were Closed", n)
	}
}

// In a secured world an owner need not learn of a peer that was not authenticated, and must not
// learn of its end.
func TestIdentifiersOfStrangers(t *testing.T) {
	for name, tt := range map[string]struct {
		does func(l *Identifiers)
		want string
	}{
		"unheard": {func(*Identifiers) {}, ""},
		"heard":   {func(l *Identifiers) { l.Heard(0, "owner", "a", states.KindDisconnected) }, "owners have heard of a"},
		"answered": {func(l *Identifiers) {
			l.Transition(0, "a", 1, states.Connected, states.Disconnecting)
			l.Transition(0, "a", 1, states.Disconnecting, states.Timewait)
			l.Event(0, "a", states.KindConnectError)
		}, ""},
		"left by its peer": {func(l *Identifiers) {
			l.Transition(0, "a", 1, states.Connected, states.PeerDisconnected)
			l.Transition(0, "a", 1, states.PeerDisconnected, states.Timewait)
			l.Event(0, "a", states.KindConnectError)
		}, ""},
		"rejected late": {func(l *Identifiers) {
			l.Transition(0, "a", 1, states.Connected, states.Disconnecting)
			l.Transition(0, "a", 1, states.Disconnecting, states.Timewait)
			l.Event(0, "a", states.KindRejected)
		}, "where the state machine has none"},
		"introduced": {func(l *Identifiers) { l.Event(0, "a", states.KindConnectRequest) }, "has not got its Closed"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			l := Identifiers{Secured: true, Fail: func(format string, args ...any) { got += fmt.Sprintf(format, args...) }}
			l.Transition(0, "a", 1, states.ConnectRequested, states.Accepting)
			l.Transition(0, "a", 1, states.Accepting, states.Connected)
			tt.does(&l)
			l.Event(0, "a", states.KindClosed)
			l.End(0)
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("the verdict is %q, want %q", got, tt.want)
			}
		})
	}
}
