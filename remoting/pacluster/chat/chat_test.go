package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/proctest"
)

func TestThreeProcesses(t *testing.T) {
	p := three(t)
	ann, bob, cat := p[0], p[1], p[2]
	ann.Say("hello \x1b[2Jall")
	for _, other := range p[1:] {
		if l := other.Want("hello", "a line travels"); l != "[lobby] ann: hello [2Jall" {
			t.Errorf("%s saw %q: control characters must go", other.nick, l)
		}
	}
	bob.Say("/room cellar")
	bob.Want("you are bob in cellar with 0 others", "moving")
	cat.Want("bob went to cellar", "moving is announced")
	cat.Say("/msg bob psst")
	bob.Want("(private) cat: psst", "a private message to another room")
	for _, somebody := range p {
		somebody.Say("/rooms")
		if l := somebody.Want("rooms: ", "the rooms of all members"); l != "* rooms: cellar, lobby" {
			t.Errorf("%s sees %q", somebody.nick, l)
		}
	}
	bob.Say("/nick CAT")
	bob.Want(`the nickname "CAT" looks like "cat"`, "a name is one person's in all rooms")
	bob.Say("/nick bobby")
	bob.Want("bob is now bobby", "renaming")
	bob.Say("/room lobby")
	cat.Want("bobby joined", "coming back")
	bob.Want("(earlier) [lobby] ann: hello", "history")
	ann.Say("/help")
	ann.Want("/where", "help")

	twin := start(t, p[0].all, "", "ann")
	twin.Want("each of ", "all three are taken")
	twin.Exit(1, "there is no place for a fourth")
	for i, somebody := range p {
		if i%2 == 0 {
			somebody.Signal(unix.SIGTERM)
		} else {
			somebody.CloseInput()
		}
		for _, other := range p[i+1:] {
			if i == 1 {
				other.Want("bobby left", "leaving is announced")
			} else {
				other.Want(somebody.nick+" left", "leaving is announced")
			}
		}
		somebody.Exit(0, "leaving")
		together(p[i+1:]...) // the room may have moved
	}
}

// When the process that has the room is killed, the room is back within a second, or a little later
// on a busy machine, without waiting for that process's silence to time out. The others notice only
// that the person of the killed process is missing.
func TestKill(t *testing.T) {
	p := three(t)
	host, others := split(p)
	others[0].Say("before")
	others[1].Want(others[0].nick+": before", "the room is there")
	for _, o := range others {
		o.Seen = nil
	}
	killed := time.Now()
	host.Signal(unix.SIGKILL)
	took := through(others[0], others[1], killed)
	t.Logf("a line goes through after %v", took)
	if took > silence {
		t.Errorf("the room is back after %v", took)
	}
	together(others...)
	for _, o := range others {
		o.Want(host.nick+" is gone", "whoever does not come back is missed")
		o.sawNot("left", "lost", "joined")
	}

	again := start(t, host.all, host.name, host.nick)
	again.Want("you are "+host.nick+" in lobby", "the name of the process, and that of the person, are free")
	others[0].Want(host.nick+" joined", "it has joined")
	together(append(others[:2:2], again)...)
}

// When the directory's process is killed, names keep their owners.
func TestKillDirectory(t *testing.T) {
	p := three(t)
	p[0].Say("/where")
	line := p[0].Want("the directory is at ", "where it is")
	var others []*process
	for _, somebody := range p {
		if strings.HasSuffix(line, somebody.name) {
			somebody.Signal(unix.SIGKILL)
		} else {
			others = append(others, somebody)
		}
	}
	for i := 0; ; i++ { // a line under way at that moment is reported, and not sent again
		others[0].Say("/msg %s psst", others[1].nick)
		if _, err := others[1].Next("(private) "+others[0].nick+": psst", 100*time.Millisecond); err == nil {
			break
		}
		if i > 1000 {
			t.Fatalf("the directory is not back; %s wrote %q", others[0].nick, others[0].Seen)
		}
	}
	others[0].Say("/nick %s", others[1].nick)
	others[0].Want("is taken", "names stay whose they are")
	others[0].Say("/rooms")
	others[0].Want("rooms: lobby", "rooms are found again")
}

// A suspended process is given up, and its room is made anew elsewhere. When the process resumes,
// it joins again as another member, with the lines that were typed in between.
func TestFreeze(t *testing.T) {
	p := three(t)
	host, others := split(p)
	host.Freeze()
	host.Say("typed while it stood still")
	took := through(others[0], others[1], time.Now())
	t.Logf("a line goes through after %v", took)
	if took > 3*silence { // counted in ticks, and longer on a busy machine
		t.Errorf("that took %v", took)
	}
	host.Signal(unix.SIGCONT)
	host.Want("it joins again", "it learns that it was given up")
	host.Want("you are "+host.nick+" in lobby", "it has joined again")
	together(p...)
	others[0].Say("all here?")
	host.Want(others[0].nick+": all here?", "they are together")
	for _, o := range others {
		o.sawNot("given this process up")
	}
}

// through types lines at from until to sees one, and returns how long that took. Lines that do not
// arrive must be reported to from, because the room may have received them.
func through(from, to *process, begun time.Time) time.Duration {
	from.t.Helper()
	came := make(map[string]bool)
	said := 0
	var took time.Duration
	for deadline := begun.Add(patience); took == 0; {
		from.Say("line %d.", said)
		said++
		if time.Now().After(deadline) {
			from.t.Fatalf("no line goes through; %s wrote %q, and %s %q", from.nick, from.Seen, to.nick, to.Seen)
		}
		if l, err := to.Next(from.nick+": line ", 20*time.Millisecond); err == nil {
			took = time.Since(begun)
			to.Seen = append(to.Seen, l)
		}
	}
	from.Say("end")
	to.Want(from.nick+": end", "lines go through")
	for _, l := range to.Seen {
		if _, line, ok := strings.Cut(l, from.nick+": line "); ok {
			came[line] = true
		}
	}
	from.Say("/who")
	from.Want("* in ", "its answer")
	if missing := said - len(came); missing > from.reported() {
		from.t.Errorf("%d of %d lines are missing, and %d are reported", missing, said, from.reported())
	}
	return took
}

// reported returns the number of lines that were reported to the person as uncertain.
func (p *process) reported() (lines int) {
	for _, l := range p.Seen {
		var n int
		if _, err := fmt.Sscanf(l, "-- %d line", &n); err == nil && strings.Contains(l, "may not have arrived") {
			lines += n
		}
	}
	return lines
}

// If two people in the room are killed at the same time, and the room with them, the others see
// that both are missing.
func TestTwoLeave(t *testing.T) {
	all := freeMembers(t, 4)
	var p []*process
	for i, nick := range []string{"ann", "bob", "cat", "dan"} {
		p = append(p, start(t, all, all[i], nick))
	}
	together(p...)
	host, others := split(p)
	for _, gone := range []*process{host, others[0]} {
		gone.Signal(unix.SIGKILL)
	}
	for _, o := range others[1:] {
		for _, gone := range []*process{host, others[0]} {
			if !slices.ContainsFunc(o.Seen, func(l string) bool { return strings.HasPrefix(l, "* "+gone.nick+" is") }) {
				o.Want("* "+gone.nick+" is", "it is lost, or gone")
			}
		}
	}
}

// A stuck terminal blocks neither other people nor the end of a program.
func TestStuckTerminal(t *testing.T) {
	all := freeMembers(t, 2)
	ann := proctest.StartAtTerminal(t, "ann", config(t, all, all[0], "ann"))
	ann.Want("you are ann", "it has joined")
	bob := start(t, all, all[1], "bob")
	for line := ""; !strings.Contains(line, "ann, bob"); time.Sleep(20 * time.Millisecond) {
		bob.Say("/who")
		line = bob.Want("* in ", "who is there")
	}
	ann.Stick()
	const lines = 500 // more than a terminal takes, or a backlog
	for range lines {
		bob.Say("%s", strings.Repeat("x", 4000))
	}
	bob.Say("/rooms")
	bob.Want("rooms: lobby", "the room and the directory go on")
	begun := time.Now()
	ann.Signal(unix.SIGTERM)
	if state, _ := ann.Exit("SIGTERM"); state.ExitCode() != 1 {
		t.Errorf("it ends with %v", state)
	}
	t.Logf("it ends after %v", time.Since(begun))
	bob.Want("* ann is ", "it is lost, or gone")
}

// When the process that has the room leaves in order, no line is duplicated, or lost without a
// report.
func TestLeaveInOrder(t *testing.T) {
	p := three(t)
	host, others := split(p)
	const lines = 300
	go func() {
		for i := range lines {
			others[0].Say("line %d.", i)
			time.Sleep(2 * time.Millisecond) // it goes on while the other leaves
		}
	}()
	others[1].Want("line 20.", "somebody talks")
	others[1].Seen = append(others[1].Seen, "[lobby] "+others[0].nick+": line 20.")
	host.Signal(unix.SIGINT)
	host.Exit(0, "Ctrl-C")
	others[1].Want(fmt.Sprintf("line %d.", lines-1), "somebody talks on")
	var got []string
	for _, l := range others[1].Seen {
		if _, line, ok := strings.Cut(l, ": line "); ok {
			got = append(got, line)
		}
	}
	others[0].Say("/who")
	others[0].Want("* in ", "its answer")
	others[0].sawNot("not sent")
	last, came := -1, 0
	for _, line := range got {
		var n int
		if _, err := fmt.Sscanf(line, "%d.", &n); err != nil || n <= last {
			t.Fatalf("line %s comes behind line %d: %q", line, last, others[1].Seen)
		}
		last = n
		came++
	}
	// Proto.Actor silently drops messages that the room had not handled when it ended.
	if missing := lines - 1 - came; missing > others[0].reported() {
		t.Errorf("%d lines are missing, and %d reported: %q", missing, others[0].reported(), others[1].Seen)
	}
}

func TestReadableErrors(t *testing.T) {
	all := freeMembers(t, 2)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"not a member":               {[]string{"127.0.0.1:1", "--members", strings.Join(all, ",")}, "is none of the members"},
		"bad address":                {[]string{"--members", "nowhere"}, "nowhere"},
		"no room for the other port": {[]string{"--members", "127.0.0.1:65000"}, "the port is a number of at most 64535"},
		"bad nickname":               {[]string{"--nick", "a b"}, "may not have spaces"},
		"bad room":                   {[]string{"--room", "a b"}, "may not have spaces"},
		"bad device":                 {[]string{"--device", "mlx5_0"}, "want auto, iwarp or kernel"},
		"bad flag":                   {[]string{"--nope"}, "see chat --help"},
		"extra word":                 {[]string{all[0], "extra", "--members", strings.Join(all, ",")}, `unexpected "extra"`},
		"not here":                   {[]string{"--members", "192.0.2.1:7471"}, "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, all, "", "x", tt.args...)
			p.Want(tt.want, "an error a user understands")
			p.Exit(1, "an error")
		})
	}
}
