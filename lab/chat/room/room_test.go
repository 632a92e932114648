package room

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// heard returns the texts delivered to one member.
func heard(out []Delivery, nick string) []string {
	var texts []string
	for _, d := range out {
		if d.To.Nick == nick {
			texts = append(texts, strings.TrimPrefix(d.Line.From+": "+d.Line.Text, ": "))
		}
	}
	return texts
}

func enter(t *testing.T, r *Rooms, nick, room string) *Member {
	t.Helper()
	m, _, err := r.Join(nick, "", room, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRooms(t *testing.T) {
	r := NewRooms()
	ann, bob := enter(t, r, "ann", Lobby), enter(t, r, "bob", Lobby)
	eve := enter(t, r, "eve", "cellar")

	t.Run("a line reaches the room and not the sender", func(t *testing.T) {
		out := r.Receive(ann, Line{Type: "say", Text: "hi"})
		if got := heard(out, "bob"); !slices.Equal(got, []string{"ann: hi"}) {
			t.Errorf("bob heard %q", got)
		}
		if got := append(heard(out, "ann"), heard(out, "eve")...); got != nil {
			t.Errorf("ann or eve heard %q", got)
		}
	})
	t.Run("a forged sender is not believed", func(t *testing.T) {
		out := r.Receive(eve, Line{Type: "private", From: "ann", To: "bob", Text: "psst"})
		if got := heard(out, "bob"); !slices.Equal(got, []string{"eve: psst"}) {
			t.Errorf("bob heard %q", got)
		}
	})
	t.Run("a nickname is one's own", func(t *testing.T) {
		if _, _, err := r.Join("ann", "", Lobby, nil); err == nil {
			t.Error("a second ann came in")
		}
		out := r.Receive(bob, Line{Type: "nick", Text: "ann"})
		if got := heard(out, "bob"); len(got) != 1 || !strings.Contains(got[0], "taken") {
			t.Errorf("bob heard %q", got)
		}
	})
	t.Run("a nickname that looks like somebody's is theirs", func(t *testing.T) {
		// Cyrillic, Armenian, wide
		for _, nick := range []string{"Ann", "\u0430nn", "a\u0578n", "ａnn"} {
			if _, _, err := r.Join(nick, "", Lobby, nil); err == nil {
				t.Errorf("%+q came in beside ann", nick)
			}
			r.Receive(bob, Line{Type: "nick", Text: nick})
		}
		if bob.Nick != "bob" {
			t.Errorf("bob is %+q now", bob.Nick)
		}
		if r.Receive(bob, Line{Type: "nick", Text: "Bob"}); bob.Nick != "Bob" {
			t.Error("bob cannot change how his own name is written")
		}
		r.Receive(bob, Line{Type: "nick", Text: "bob"})
	})
	t.Run("however it is written", func(t *testing.T) {
		for _, names := range [][]string{
			{"max", "Max", "MAX", "rnax"},
			{"Ivan", "ivan", "IVAN", "lvan", "\u0406van"}, // Ukrainian
			{"катя", "Катя", "КАТЯ"},
			{"zo\u00e9", "zoe\u0301", "zo\u00e9\u0301"},
		} {
			m := enter(t, r, names[0], Lobby)
			for _, nick := range names[1:] {
				if _, _, err := r.Join(nick, "", Lobby, nil); err == nil {
					t.Errorf("%+q came in beside %+q", nick, names[0])
				}
				r.Receive(m, Line{Type: "nick", Text: nick})
				r.Receive(m, Line{Type: "nick", Text: names[0]})
				if m.Nick != names[0] {
					t.Errorf("%+q cannot be %+q again", nick, names[0])
				}
			}
			r.Leave(m, "")
			r.Leave(enter(t, r, names[1], Lobby), "")
		}
		enter(t, r, "lou", Lobby)
		m := enter(t, r, "iou", Lobby)
		if r.Receive(m, Line{Type: "nick", Text: "Iou"}); m.Nick != "iou" {
			t.Error("iou looks like lou now")
		}
		r.Receive(m, Line{Type: "private", To: "lou", Text: "x"})
		if out := r.Receive(m, Line{Type: "private", To: "Lou", Text: "x"}); out[0].To.Nick != "lou" {
			t.Errorf("what is for Lou goes to %s", out[0].To.Nick)
		}
		for _, m := range []string{"lou", "iou"} {
			found, _ := r.directory.Find(m)
			r.Leave(found, "")
		}
	})
	t.Run("a nickname that was given up is free", func(t *testing.T) {
		r.Receive(bob, Line{Type: "nick", Text: "zoe"})
		r.Leave(enter(t, r, "bob", "attic"), "")
		r.Receive(bob, Line{Type: "nick", Text: "bob"})
		r.Leave(enter(t, r, "zoe", "attic"), "")
		if bob.Nick != "bob" {
			t.Errorf("bob is %q", bob.Nick)
		}
	})
	t.Run("a room that looks like another is that one", func(t *testing.T) {
		m := enter(t, r, "tom", "c\u0435llar")
		if m.Room != eve.Room {
			t.Errorf("there are two rooms %q", r.names())
		}
		r.Leave(m, "")
	})
	t.Run("a room is listed once, however its name is written", func(t *testing.T) {
		m := enter(t, r, "tom", "Max") // a small m looks like rn
		out := r.Receive(m, Line{Type: "rooms"})
		if got := heard(out, "tom"); !slices.Equal(got, []string{"rooms: Max, cellar, lobby"}) {
			t.Errorf("tom heard %q", got)
		}
		r.Leave(m, "")
	})
	t.Run("who comes late hears the past", func(t *testing.T) {
		_, out, err := r.Join("joe", "", Lobby, nil)
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
		out := r.Receive(bob, Line{Type: "room", Text: "cellar"})
		if got := heard(out, "ann"); !slices.Equal(got, []string{"bob went to cellar"}) {
			t.Errorf("ann heard %q", got)
		}
		if got := heard(out, "eve"); !slices.Equal(got, []string{"bob joined"}) {
			t.Errorf("eve heard %q", got)
		}
	})
	t.Run("leaving is announced once", func(t *testing.T) {
		if got := heard(r.Leave(bob, ""), "eve"); !slices.Equal(got, []string{"bob left"}) {
			t.Errorf("eve heard %q", got)
		}
		if r.Leave(bob, "") != nil {
			t.Error("bob left twice")
		}
	})
	t.Run("an unknown name or request is reported to its sender", func(t *testing.T) {
		for _, l := range []Line{{Type: "private", To: "nobody", Text: "x"}, {Type: "dance"}, {Type: "room", Text: "a b"}} {
			if got := heard(r.Receive(ann, l), "ann"); len(got) != 1 {
				t.Errorf("%+v: ann heard %q", l, got)
			}
		}
	})
}

func TestReturning(t *testing.T) {
	r := New("cellar")
	ann, bob := &Member{Nick: "ann"}, &Member{Nick: "bob"}
	for _, m := range []*Member{ann, bob} {
		if out := r.Return(m, ""); len(out) != 1 || out[0].To != m || out[0].Line != (Line{Type: "you", From: m.Nick, Room: "cellar"}) {
			t.Errorf("when %s returns, what is sent is %+v", m.Nick, out)
		}
	}
	r.Exit(bob, "bob is lost")
	out := r.Return(bob, "is back")
	if got := heard(out, "ann"); !slices.Equal(got, []string{"bob is back"}) {
		t.Errorf("ann heard %q", got)
	}
	if got := heard(r.Say(ann, "hi", true), "bob"); !slices.Equal(got, []string{"ann: hi"}) {
		t.Errorf("bob heard %q", got)
	}
}

func TestRoomsAreBounded(t *testing.T) {
	r := NewRooms()
	m := enter(t, r, "ann", Lobby)
	for i := range 3 * HistoryLen {
		r.Receive(m, Line{Type: "say", Text: fmt.Sprint(i)})
	}
	if n := len(m.Room.history); n != HistoryLen {
		t.Errorf("the Lobby remembers %d lines, want %d", n, HistoryLen)
	}
	for i := range 3 * maxRooms {
		r.Receive(m, Line{Type: "room", Text: fmt.Sprint("r", i)})
		r.Receive(m, Line{Type: "say", Text: "x"})
	}
	if n := len(r.rooms); n > 2 {
		t.Errorf("%d rooms are remembered though all but one are empty", n)
	}
	for i := range 3 * maxRooms {
		m := enter(t, r, fmt.Sprint("n", i), fmt.Sprint("q", i))
		r.Receive(m, Line{Type: "say", Text: "x"})
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
	for _, name := range []string{"ann", "joe_1.x-[]", "Zoë", "Владимир", "小明", strings.Repeat("x", MaxNick)} {
		if got, err := CheckName("nickname", name, MaxNick); err != nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if got, err := CheckName("nickname", "Zoe\u0308", MaxNick); got != "Zoë" {
		t.Errorf("what looks the same is not the same: %+q, %v", got, err)
	}
	for what, name := range map[string]string{
		"nothing":               "",
		"a space":               "a b",
		"a colon":               "a:",
		"a slash":               "/a",
		"a wide slash":          "／a",
		"very long":             strings.Repeat("\u0301", 1<<16),
		"too long":              strings.Repeat("x", MaxNick+1),
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
		if got, err := CheckName("nickname", name, MaxNick); err == nil {
			t.Errorf("%s: %+q is let through as %+q", what, name, got)
		}
	}
}

// Letters that differ only in case do not distinguish people.
func TestLikeness(t *testing.T) {
	for upper := range unicode.MaxRune {
		lower := unicode.ToLower(upper)
		if lower == upper || !unicode.IsUpper(upper) {
			continue
		}
		r := make(Names[int])
		r.Put("x"+string(lower), 1)
		if _, ok := r.Find("x" + string(upper)); !ok {
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
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		typed string
		want  Line
		local bool
	}{
		{"hello", Line{Type: "say", Text: "hello"}, false},
		{"  ", Line{}, false},
		{"/msg bob hi there", Line{Type: "private", To: "bob", Text: "hi there"}, false},
		{"/msg bob", Line{}, true},
		{"/nick  ann ", Line{Type: "nick", Text: "ann"}, false},
		{"/nick", Line{}, true},
		{"/who", Line{Type: "who"}, false},
		{"/help", Line{}, true},
		{"/dance", Line{}, true},
		{"  /msg bob hi", Line{Type: "private", To: "bob", Text: "hi"}, false},
		{strings.Repeat("x", MaxText+1), Line{Type: "say", Text: strings.Repeat("x", MaxText)}, true},
	} {
		got, local := Parse(tt.typed)
		if got != tt.want || (local != "") != tt.local {
			t.Errorf("Parse(%q) = %+v, %q", tt.typed, got, local)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Line{Type: "say", From: "ann", Room: Lobby, Text: "hi"}.Encode())
	f.Add([]byte(`{"t":"say","text":"\u001b[2J"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Decode(b)
		if err != nil {
			return
		}
		if Clean(l.Text) != l.Text || len(l.Text) > MaxText || len(l.From) > MaxNick {
			t.Errorf("let through %+v", l)
		}
		again, err := Decode(l.Encode())
		if err != nil || again != l {
			t.Errorf("%+v comes back as %+v, %v", l, again, err)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add("ann", Lobby)
	f.Fuzz(func(t *testing.T, nick, room string) {
		l, err := Decode(Line{Type: "hello", From: nick, Room: room}.Encode())
		if err != nil {
			return
		}
		m, _, err := NewRooms().Join(l.From, "", l.Room, nil)
		if err != nil {
			return
		}
		for _, name := range []string{m.Nick, m.Room.Name} {
			if again, err := CheckName("name", name, MaxRoom); err != nil || again != name || Clean(name) != name {
				t.Errorf("%+q is let through, and is %+q next time: %v", name, again, err)
			}
		}
	})
}

// TestIdentities: the identity proved by a member's key is shown beside the nickname, and cannot be
// claimed.
func TestIdentities(t *testing.T) {
	r := NewRooms()
	join := func(nick, identity string) *Member {
		m, _, err := r.Join(nick, identity, Lobby, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	reader := join("reader", "")
	shown := func(out []Delivery) string {
		for _, d := range out {
			if d.To == reader {
				l, err := Decode(d.Line.Encode()) // as its client receives it
				if err != nil {
					t.Fatal(err)
				}
				return l.Show()
			}
		}
		return ""
	}
	for _, tt := range []struct{ nick, identity, want string }{
		{"ann", "ann", "ann ✓"},
		{"bob", "eve", `bob ("eve")`},
		{"zoe", "", "zoe"},
		{"dan", "dan\x1b[2J\u202e ✓", `dan ("dan\x1b[2J\u202e \u2713")`},
		{"joe", strings.Repeat("j", 1000), `joe ("` + strings.Repeat("j", maxIdentity) + `")`},
	} {
		m := join(tt.nick, tt.identity)
		forged := Line{From: "reader", Identity: "reader", Text: "hi"}
		for typ, want := range map[string]string{"say": "[lobby] " + tt.want + ": hi", "private": "(private) " + tt.want + ": hi"} {
			forged.Type, forged.To = typ, "reader"
			if got := shown(r.Receive(m, forged)); got != want {
				t.Errorf("%s of %s (%q): %q, want %q", typ, tt.nick, tt.identity, got, want)
			}
		}
		if got, want := shown(r.Leave(m, "")), "* "+tt.want+" left"; got != want {
			t.Errorf("%s (%q) leaves: %q, want %q", tt.nick, tt.identity, got, want)
		}
	}
	ann := join("ann", "ann")
	if got, want := shown(r.Receive(reader, Line{Type: "who"})), "* in lobby: ann ✓, reader"; got != want {
		t.Errorf("who: %q, want %q", got, want)
	}
	if got, want := shown(r.Receive(ann, Line{Type: "nick", Text: "bob"})), `* ann ✓ is now bob ("ann")`; got != want {
		t.Errorf("another name: %q, want %q", got, want)
	}
	for _, nick := range []string{"eve ✓", "eve✓", `eve ("ann")`, "eve\u00a0✓"} {
		if _, _, err := r.Join(nick, "", Lobby, nil); err == nil {
			t.Errorf("%q is a nickname", nick)
		}
	}
}
