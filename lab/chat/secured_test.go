package main

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
)

// TestSecured: a host with a file of keys, and clients with a key, without one, and with a wrong
// one.
func TestSecured(t *testing.T) {
	annKey, bobKey := securitytest.Key(t, "ann"), securitytest.Key(t, "bob")
	addr := freeAddr(t)
	host := start(t, "host", "serve", addr, "--key", securitytest.KeyFile(t, annKey, bobKey))
	host.Want("join with: chat join "+addr+" --key FILE", "what the others need")
	ann := start(t, "ann", "join", addr, "--nick", "ann", "--key", securitytest.KeyFile(t, annKey))
	ann.Want("you are ann in lobby", "her key is the host's")
	bob := start(t, "bob", "join", addr, "--nick", "bob", "--key", securitytest.KeyFile(t, bobKey))
	bob.Want("you are bob in lobby with 1 other;", "his key is the host's, too")
	bob.Say("nobody reads this")
	ann.Want("bob ✓: nobody reads this", "a line travels, and his key is bob's")
	carl := start(t, "carl", "join", addr, "--nick", "carl", "--key", securitytest.KeyFile(t, bobKey))
	ann.Want(`carl ("bob") joined`, "who has bob's key calls himself carl")
	carl.Say("hello")
	ann.Want(`carl ("bob"): hello`, "whose key it is stands beside the name")

	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"another key":      {[]string{"--key", securitytest.KeyFile(t, securitytest.Key(t, "ann"))}, "no key has this id"},
		"another identity": {[]string{"--key", securitytest.KeyFile(t, rdma.Credential{Identity: "eve", Key: annKey.Key})}, "no key has this id"},
		"no key":           {nil, "another mode or suite"},
		"insecure":         {[]string{"--insecure"}, "another mode or suite"},
	} {
		t.Run(name, func(t *testing.T) {
			eve := start(t, "eve", append([]string{"join", addr, "--nick", "eve"}, tt.args...)...)
			eve.CloseInput()
			eve.Want(tt.want, "why she is not let in")
			eve.Exit(1, "she is not let in")
		})
	}
	ann.Say("still here")
	bob.Want("ann ✓: still here", "the others have not noticed")
	host.Signal(unix.SIGINT)
	for _, l := range host.Exit(0, "Ctrl-C") {
		if strings.Contains(l, "eve joined") {
			t.Errorf("the host has let her in: %q", l)
		}
	}
}

// TestKeyOfAnInsecureHost: a client that requires a key of the host does not talk to a host without
// one.
func TestKeyOfAnInsecureHost(t *testing.T) {
	addr := freeAddr(t)
	start(t, "host", "serve", addr).Want("hosting on", "it listens")
	ann := start(t, "ann", "join", addr, "--nick", "ann", "--key", securitytest.KeyFile(t, securitytest.Key(t, "ann")))
	ann.CloseInput()
	ann.Want("do both sides have the same --key", "the host has no keys")
	ann.Exit(1, "no connection")
}

// TestRotation: a key is replaced while people talk. No connection is lost, and in the end the old
// key is refused.
func TestRotation(t *testing.T) {
	old, young := securitytest.Key(t, "ann"), securitytest.Key(t, "ann")
	both, server := securitytest.KeyFile(t, old), securitytest.KeyFile(t, old)
	addr := freeAddr(t)
	host := start(t, "host", "serve", addr, "--key", server)
	host.Want("hosting on", "it listens")
	ann := start(t, "ann", "join", addr, "--nick", "ann", "--key", both)
	ann.Want("you are ann in lobby", "with the old key")

	securitytest.Replace(t, server, old, young)
	host.Want("connecting with the key of ann; keys of peers: 2", "it has seen the new key")
	bob := start(t, "bob", "join", addr, "--nick", "bob", "--key", securitytest.KeyFile(t, young))
	bob.Want("you are bob in lobby with 1 other;", "with the new key, and the old one is still good")
	securitytest.Replace(t, both, young)
	ann.Want("has changed", "she has seen the new key")
	securitytest.Replace(t, server, young)
	host.Want("keys of peers: 1", "the old key is gone")
	eve := start(t, "eve", "join", addr, "--nick", "eve", "--key", securitytest.KeyFile(t, old))
	eve.CloseInput()
	eve.Want("no key has this id", "the old key opens nothing")
	eve.Exit(1, "an old key")
	bob.Say("hello")
	ann.Want(`bob ("ann"): hello`, "who was connected still is")

	// a mistake in the file revokes no key
	if err := os.WriteFile(server, []byte("ann:oops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host.Want("the keys stay as they are: "+server+": line 1: ", "a bad file")
	zoe := start(t, "zoe", "join", addr, "--nick", "zoe", "--key", securitytest.KeyFile(t, young))
	zoe.Want("you are zoe in lobby with 2 others;", "the keys are as they were")

	// and a client whose file has changed reconnects with the new key
	host.Signal(unix.SIGINT)
	host.Exit(0, "Ctrl-C")
	ann.Want("trying again", "the host has gone")
	start(t, "host", "serve", addr, "--key", securitytest.KeyFile(t, young)).Want("hosting on", "it is there again")
	ann.Want("connected again", "with the new key, though she began with the old one")
}

func TestBadKeyFiles(t *testing.T) {
	open := securitytest.KeyFile(t, securitytest.Key(t, "ann"))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"others can read it": {[]string{"--key", open}, "chmod 600"},
		"it is not there":    {[]string{"--key", open + "2"}, "no such file"},
		"it is something else": {
			[]string{"--key", os.Args[0]}, "others can use the keys of",
		},
		"and insecure": {[]string{"--key", open, "--insecure"}, "--key or --insecure?"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"serve", "join"} {
				p := start(t, command, append([]string{command, "127.0.0.1:7471"}, tt.args...)...)
				p.Want(tt.want, "an error a user understands")
				p.Exit(1, "an error")
			}
		})
	}
}

// TestBeyondLoopback: the error names the flags, and with one of them the host starts.
func TestBeyondLoopback(t *testing.T) {
	for _, args := range [][]string{{"serve", ":0"}, {"join", "192.0.2.1", "--nick", "x"}} {
		p := start(t, args[0], args...)
		p.CloseInput()
		p.Want("this goes beyond loopback: say how it is secured, with --key FILE", "an error a user understands")
		p.Exit(1, "an error")
	}
	for _, flags := range [][]string{{"--insecure"}, {"--key", securitytest.KeyFile(t, securitytest.Key(t, "ann"))}} {
		p := start(t, "host", append([]string{"serve", ":0"}, flags...)...)
		p.Want("hosting on", "somebody has said how it is secured")
	}
}
