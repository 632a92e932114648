package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// heard gives what one member is sent, as text.
func heard(out []delivery, nick string) []string {
	var texts []string
	for _, d := range out {
		if d.to.nick == nick {
			texts = append(texts, strings.TrimPrefix(d.line.From+": "+d.line.Text, ": "))
		}
	}
	return texts
}

func enter(t *testing.T, r *rooms, nick, room string) *member {
	t.Helper()
	m, _, err := r.join(hello{nick, room}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRooms(t *testing.T) {
	r := newRooms()
	ann, bob := enter(t, r, "ann", lobby), enter(t, r, "bob", lobby)
	eve := enter(t, r, "eve", "cellar")

	t.Run("a line reaches the room and not the sender", func(t *testing.T) {
		out := r.receive(ann, line{Type: "say", Text: "hi"})
		if got := heard(out, "bob"); !slices.Equal(got, []string{"ann: hi"}) {
			t.Errorf("bob heard %q", got)
		}
		if got := append(heard(out, "ann"), heard(out, "eve")...); got != nil {
			t.Errorf("ann or eve heard %q", got)
		}
	})
	t.Run("a forged sender is not believed", func(t *testing.T) {
		out := r.receive(eve, line{Type: "private", From: "ann", To: "bob", Text: "psst"})
		if got := heard(out, "bob"); !slices.Equal(got, []string{"eve: psst"}) {
			t.Errorf("bob heard %q", got)
		}
	})
	t.Run("a nickname is one's own", func(t *testing.T) {
		if _, _, err := r.join(hello{"ann", lobby}, nil); err == nil {
			t.Error("a second ann came in")
		}
		out := r.receive(bob, line{Type: "nick", Text: "ann"})
		if got := heard(out, "bob"); len(got) != 1 || !strings.Contains(got[0], "taken") {
			t.Errorf("bob heard %q", got)
		}
	})
	t.Run("a nickname that looks like somebody's is theirs", func(t *testing.T) {
		// Cyrillic, Armenian, wide
		for _, nick := range []string{"Ann", "\u0430nn", "a\u0578n", "ａnn"} {
			if _, _, err := r.join(hello{nick, lobby}, nil); err == nil {
				t.Errorf("%+q came in beside ann", nick)
			}
			r.receive(bob, line{Type: "nick", Text: nick})
		}
		if bob.nick != "bob" {
			t.Errorf("bob is %+q now", bob.nick)
		}
		if r.receive(bob, line{Type: "nick", Text: "Bob"}); bob.nick != "Bob" {
			t.Error("bob cannot change how his own name is written")
		}
		r.receive(bob, line{Type: "nick", Text: "bob"})
	})
	t.Run("however it is written", func(t *testing.T) {
		for _, names := range [][]string{
			{"max", "Max", "MAX", "rnax"},
			{"Ivan", "ivan", "IVAN", "lvan", "\u0406van"}, // Ukrainian
			{"катя", "Катя", "КАТЯ"},
			{"zo\u00e9", "zoe\u0301", "zo\u00e9\u0301"},
		} {
			m := enter(t, r, names[0], lobby)
			for _, nick := range names[1:] {
				if _, _, err := r.join(hello{nick, lobby}, nil); err == nil {
					t.Errorf("%+q came in beside %+q", nick, names[0])
				}
				r.receive(m, line{Type: "nick", Text: nick})
				r.receive(m, line{Type: "nick", Text: names[0]})
				if m.nick != names[0] {
					t.Errorf("%+q cannot be %+q again", nick, names[0])
				}
			}
			r.leave(m, "")
			r.leave(enter(t, r, names[1], lobby), "")
		}
		enter(t, r, "lou", lobby)
		m := enter(t, r, "iou", lobby)
		if r.receive(m, line{Type: "nick", Text: "Iou"}); m.nick != "iou" {
			t.Error("iou looks like lou now")
		}
		r.receive(m, line{Type: "private", To: "lou", Text: "x"})
		if out := r.receive(m, line{Type: "private", To: "Lou", Text: "x"}); out[0].to.nick != "lou" {
			t.Errorf("what is for Lou goes to %s", out[0].to.nick)
		}
		for _, m := range []string{"lou", "iou"} {
			found, _ := r.members.find(m)
			r.leave(found, "")
		}
	})
	t.Run("a nickname that was given up is free", func(t *testing.T) {
		r.receive(bob, line{Type: "nick", Text: "zoe"})
		r.leave(enter(t, r, "bob", "attic"), "")
		r.receive(bob, line{Type: "nick", Text: "bob"})
		r.leave(enter(t, r, "zoe", "attic"), "")
		if bob.nick != "bob" {
			t.Errorf("bob is %q", bob.nick)
		}
	})
	t.Run("a room that looks like another is that one", func(t *testing.T) {
		m := enter(t, r, "tom", "c\u0435llar")
		if m.room != eve.room {
			t.Errorf("there are two rooms %q", r.names())
		}
		r.leave(m, "")
	})
	t.Run("who comes late hears the past", func(t *testing.T) {
		_, out, err := r.join(hello{"joe", lobby}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := heard(out, "joe"); len(got) != 3 || got[2] != "ann: hi" {
			t.Errorf("joe heard %q", got)
		}
		if got := heard(out, "ann"); !slices.Equal(got, []string{"joe joined"}) {
			t.Errorf("ann heard %q", got)
		}
	})
	t.Run("moving notifies both rooms", func(t *testing.T) {
		out := r.receive(bob, line{Type: "room", Text: "cellar"})
		if got := heard(out, "ann"); !slices.Equal(got, []string{"bob went to cellar"}) {
			t.Errorf("ann heard %q", got)
		}
		if got := heard(out, "eve"); !slices.Equal(got, []string{"bob joined"}) {
			t.Errorf("eve heard %q", got)
		}
	})
	t.Run("leaving is announced once", func(t *testing.T) {
		if got := heard(r.leave(bob, ""), "eve"); !slices.Equal(got, []string{"bob left"}) {
			t.Errorf("eve heard %q", got)
		}
		if r.leave(bob, "") != nil {
			t.Error("bob left twice")
		}
	})
	t.Run("an unknown name or request is reported to its sender", func(t *testing.T) {
		for _, l := range []line{{Type: "private", To: "nobody", Text: "x"}, {Type: "dance"}, {Type: "room", Text: "a b"}} {
			if got := heard(r.receive(ann, l), "ann"); len(got) != 1 {
				t.Errorf("%+v: ann heard %q", l, got)
			}
		}
	})
}

func TestRoomsAreBounded(t *testing.T) {
	r := newRooms()
	m := enter(t, r, "ann", lobby)
	for i := range 3 * historyLen {
		r.receive(m, line{Type: "say", Text: fmt.Sprint(i)})
	}
	if n := len(m.room.history); n != historyLen {
		t.Errorf("the lobby remembers %d lines, want %d", n, historyLen)
	}
	for i := range 3 * maxRooms {
		r.receive(m, line{Type: "room", Text: fmt.Sprint("r", i)})
		r.receive(m, line{Type: "say", Text: "x"})
	}
	if n := len(r.rooms); n > 2 {
		t.Errorf("%d rooms are remembered though all but one are empty", n)
	}
	for i := range 3 * maxRooms {
		m := enter(t, r, fmt.Sprint("n", i), fmt.Sprint("q", i))
		r.receive(m, line{Type: "say", Text: "x"})
	}
	n := 0
	for _, room := range r.rooms {
		n += min(len(room.history), 1)
	}
	if n > maxRooms {
		t.Errorf("%d rooms have a history", n)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"ann", "joe_1.x-[]", "Zoë", "Владимир", "小明", strings.Repeat("x", maxNick)} {
		if got, err := checkName("nickname", name, maxNick); err != nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if got, err := checkName("nickname", "Zoe\u0308", maxNick); got != "Zoë" {
		t.Errorf("what looks the same is not the same: %+q, %v", got, err)
	}
	for what, name := range map[string]string{
		"nothing":               "",
		"a space":               "a b",
		"a colon":               "a:",
		"a slash":               "/a",
		"a wide slash":          "／a",
		"very long":             strings.Repeat("\u0301", 1<<16),
		"too long":              strings.Repeat("x", maxNick+1),
		"a zero-width joiner":   "ali\u200dce",
		"a Hangul filler":       "alice\u3164",
		"a Hangul choseong":     "\u115falice",
		"a braille blank":       "alice\u2800",
		"a variation selector":  "alice\ufe0f",
		"a soft hyphen":         "ali\u00adce",
		"a grapheme joiner":     "ali\u034fce",
		"a Mongolian separator": "ali\u180ece",
		"a tag":                 "alice\U000e0041",
		"a no-break space":      "alice\u00a0",
		"right to left":         "\u202eecila",
		"a Khitan filler":       "ali\U00016fe4ce",
		"another script's mark": "ali\u0e31ce",
		"an escape":             "\x1b[2J",
		"no UTF-8":              "a\xff",
	} {
		if got, err := checkName("nickname", name, maxNick); err == nil {
			t.Errorf("%s: %+q is let through as %+q", what, name, got)
		}
	}
}

// Letters that differ in nothing but their case do not distinguish people.
func TestLikeness(t *testing.T) {
	for upper := range unicode.MaxRune {
		lower := unicode.ToLower(upper)
		if lower == upper || !unicode.IsUpper(upper) {
			continue
		}
		r := make(names[int])
		r.put("x"+string(lower), 1)
		if _, ok := r.find("x" + string(upper)); !ok {
			t.Errorf("x%c and x%c are two names", upper, lower)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                   "plain",
		"tab\there":               "tab here",
		"\x1b[2Jgone":             "[2Jgone",
		"bell\a \r\nnew":          "bell new",
		"right\u202eto left":      "rightto left",
		"bad\xffbyte":             "badbyte",
		"c1 \u009b31m":            "c1 31m",
		"umlaut ü and emoji 🙂 ok": "umlaut ü and emoji 🙂 ok",
		"family 👨\u200d👩\u200d👧":  "family 👨\u200d👩\u200d👧",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		typed string
		want  line
		local bool
	}{
		{"hello", line{Type: "say", Text: "hello"}, false},
		{"  ", line{}, false},
		{"/msg bob hi there", line{Type: "private", To: "bob", Text: "hi there"}, false},
		{"/msg bob", line{}, true},
		{"/nick  ann ", line{Type: "nick", Text: "ann"}, false},
		{"/nick", line{}, true},
		{"/who", line{Type: "who"}, false},
		{"/help", line{}, true},
		{"/dance", line{}, true},
		{"  /msg bob hi", line{Type: "private", To: "bob", Text: "hi"}, false},
		{strings.Repeat("x", maxText+1), line{Type: "say", Text: strings.Repeat("x", maxText)}, true},
	} {
		got, local := parse(tt.typed)
		if got != tt.want || (local != "") != tt.local {
			t.Errorf("parse(%q) = %+v, %q", tt.typed, got, local)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(line{Type: "say", From: "ann", Room: lobby, Text: "hi"}.encode())
	f.Add([]byte(`{"t":"say","text":"\u001b[2J"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decode(b)
		if err != nil {
			return
		}
		if clean(l.Text) != l.Text || len(l.Text) > maxText || len(l.From) > maxNick {
			t.Errorf("let through %+v", l)
		}
		again, err := decode(l.encode())
		if err != nil || again != l {
			t.Errorf("%+v comes back as %+v, %v", l, again, err)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add("ann", lobby)
	f.Fuzz(func(t *testing.T, nick, room string) {
		l, err := decode(hello{nick, room}.encode())
		if err != nil {
			return
		}
		m, _, err := newRooms().join(hello{l.From, l.Room}, nil)
		if err != nil {
			return
		}
		for _, name := range []string{m.nick, m.room.name} {
			if again, err := checkName("name", name, maxRoom); err != nil || again != name || clean(name) != name {
				t.Errorf("%+q is let through, and is %+q next time: %v", name, again, err)
			}
		}
	})
}
