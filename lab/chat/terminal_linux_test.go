package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/proctest"
)

func startAtTerminal(t *testing.T, name string, args ...string) *proctest.Screen {
	t.Helper()
	return proctest.StartAtTerminal(t, name, chat(args))
}

func TestTerminal(t *testing.T) {
	addr := freeAddr(t)
	start(t, "host", "serve", "--addr", addr).Want("hosting on", "it listens")
	bob := start(t, "bob", "join", addr, "--nick", "bob")
	bob.Want("you are bob", "connected")
	ann := startAtTerminal(t, "ann", "join", addr, "--nick", "ann")
	ann.Want("you are ann", "connected")

	ann.Keys("helo")
	ann.Want("helo", "what is typed is shown")
	ann.Keys("\x1b[Dl") // cursor left, insert: the rest is drawn again, and the cursor moves back
	ann.Want("lo\x1b[D", "the line is being edited")
	bob.Say("meanwhile")
	// The terminal erases the half-typed line, prints the chat, and draws prompt and line again.
	ann.Want("[lobby] bob: meanwhile\r\n", "the chat goes on above the prompt")
	ann.Want("> hello", "what was typed is still there, in one piece")
	ann.Keys("\r")
	bob.Want("[lobby] ann: hello", "the edited line")
	ann.Keys("\x1b[A\r") // the previous line, from the history
	bob.Want("[lobby] ann: hello", "the history")
	ann.Keys("/help\r")
	ann.Want("/msg NAME TEXT", "help")
	ann.Keys("\x03")
	bob.Want("ann left", "Ctrl-C leaves")
	if state, _ := ann.Exit("Ctrl-C"); !state.Success() {
		t.Errorf("Ctrl-C ends the program with %v", state)
	}
}

// A person can leave at every stage, even if typed lines cannot be sent.
func TestTerminalCanBeLeft(t *testing.T) {
	const ctrlC, ctrlD = "\x03", "\x04"
	enter := func(t *testing.T) (host *proctest.Process, ann *proctest.Screen) {
		host = start(t, "host", "serve", "127.0.0.1:0")
		line := host.Want("join with: chat join ", "it listens")
		ann = startAtTerminal(t, "ann", "join", line[strings.LastIndex(line, " ")+1:], "--nick", "ann")
		ann.Want("you are ann", "connected")
		return host, ann
	}
	for name, keys := range map[string]string{"Ctrl-C": ctrlC, "Ctrl-D": ctrlD, "quit": "/quit\r"} {
		t.Run("server gone, "+name, func(t *testing.T) {
			host, ann := enter(t)
			host.Kill()
			ann.Want("trying again", "the server has gone")
			ann.Keys(strings.Repeat("line\r", 70) + keys)
			state, shown := ann.Exit(name)
			if state.ExitCode() != 1 || !strings.Contains(shown, "64 lines not sent") {
				t.Errorf("%v, and it shows %q", state, shown)
			}
		})
		t.Run("server stalled, "+name, func(t *testing.T) {
			host, ann := enter(t)
			host.Freeze()
			ann.Keys(strings.Repeat("line\r", 40) + keys)
			state, shown := ann.Exit(name)
			if state.ExitCode() != 1 || !strings.Contains(shown, "does not take what is sent") {
				t.Errorf("%v, and it shows %q", state, shown)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		host, ann := enter(t)
		host.Freeze()
		begin := time.Now()
		ann.Keys(strings.Repeat("line\r", 40) + ctrlC)
		ann.Want("leaving when", "lines wait")
		ann.Keys(ctrlC)
		state, shown := ann.Exit("a second Ctrl-C")
		// On a busy machine it may have ended before the signal.
		if status := state.Sys().(syscall.WaitStatus); !status.Signaled() && time.Since(begin) < leaveFor {
			t.Errorf("%v, and it shows %q", state, shown)
		}
	})
}

// A terminal that is stuck does not keep a program from ending.
func TestStuckTerminal(t *testing.T) {
	addr := freeAddr(t)
	start(t, "host", "serve", "--addr", addr).Want("hosting on", "it listens")
	bob := start(t, "bob", "join", addr, "--nick", "bob")
	bob.Want("you are bob", "connected")
	ann := startAtTerminal(t, "ann", "join", addr, "--nick", "ann")
	ann.Want("you are ann", "connected")
	ann.Stick()
	for range 100 { // more than a terminal buffers
		bob.Say("%s", strings.Repeat("x", 2000))
	}
	bob.Say("/who")
	bob.Want("in lobby: ", "the host has got them all")
	time.Sleep(100 * time.Millisecond) // the test cannot see when the terminal is full
	ann.Signal(unix.SIGTERM)
	if state, _ := ann.Exit("SIGTERM"); state.ExitCode() != 1 {
		t.Errorf("it ends with %v", state)
	}
	bob.Want("ann left", "leaving is announced")
}
