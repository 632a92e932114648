package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/proctest"
)

// asChat makes this test binary the chat: members are processes.
const asChat = "RUN_AS_CHAT"

func TestMain(m *testing.M) {
	if os.Getenv(asChat) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, all []string, nick string) *proctest.Process {
	t.Helper()
	return proctest.Start(t, nick, proctest.Config{
		Args: []string{"--members", strings.Join(all, ","), "--nick", nick}, Env: []string{asChat + "=1", proctest.LogRaces(t)},
	})
}

// said counts the lines, so that each is another one.
var said int

// hears waits until to hears from: lines are lost while the room moves.
func hears(t *testing.T, to, from *proctest.Process) {
	t.Helper()
	what, before := from.Name+": line ", said
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		said++
		from.Say("line %d", said)
		heard, _ := to.Next(what, time.Second/4)
		if n, err := strconv.Atoi(strings.TrimPrefix(heard, what)); err == nil && n > before {
			return
		}
	}
	t.Fatalf("%s never hears %s; it has seen %q, and %s %q", to.Name, from.Name, to.Seen, from.Name, from.Seen)
}

// Three processes talk. The one that has the room is killed, and the others go on in another one.
// Then they leave.
func TestChat(t *testing.T) {
	all := proctest.FreeAddrs(t, 3)
	at := make(map[string]*proctest.Process)
	for _, nick := range []string{"ann", "bob", "cat"} {
		p := start(t, all, nick)
		_, name, _ := strings.Cut(p.Want("-- this is ", "it has a place"), "-- this is ")
		at[name] = p
		p.Want(nick+" is here", "it is in the room")
	}
	everybodyHears := func() {
		t.Helper()
		for _, from := range at {
			for _, to := range at {
				if from != to {
					hears(t, to, from)
				}
			}
		}
	}
	everybodyHears()
	start(t, all, "dan").Exit(1, "there is no place for a fourth")

	room := roomOf(t, at)
	at[room].Kill()
	delete(at, room)
	everybodyHears()
	if again := roomOf(t, at); again == room {
		t.Error("the room is still where it was")
	}

	for name, p := range at {
		delete(at, name)
		p.CloseInput()
		p.Exit(0, "the end of its input")
		for _, other := range at {
			other.Want(p.Name+" left", "a goodbye")
			other.Signal(unix.SIGINT)
			other.Exit(0, "Ctrl-C")
		}
		break
	}
}

// roomOf returns the member that has the room.
func roomOf(t *testing.T, at map[string]*proctest.Process) (name string) {
	t.Helper()
	for _, p := range at {
		for _, line := range slices.Backward(p.Seen) {
			if _, name, found := strings.Cut(line, "-- the room is at "); found {
				return name
			}
		}
	}
	t.Fatal("nobody knows where the room is")
	return ""
}
