package main

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
)

// TestSecured: all members have the key, and it is replaced while they talk: the rooms stay where
// they are, and a returning member has the new key.
func TestSecured(t *testing.T) {
	old, young := securitytest.Key(t, "members"), securitytest.Key(t, "members")
	file := securitytest.KeyFile(t, old)
	p := three(t, "--key", file)
	ann, others := p[0], p[1:]
	ann.Say("hello")
	for _, o := range others {
		o.Want("ann: hello", "a line travels")
	}
	securitytest.Replace(t, file, old, young)
	for _, somebody := range p {
		somebody.Want("has changed: connecting with the key of members; keys of peers: 2", "it has both keys")
	}
	securitytest.Replace(t, file, young)
	for _, somebody := range p {
		somebody.Want("keys of peers: 1", "it has the new key")
	}
	ann.Say("still here")
	for _, o := range others {
		o.Want("ann: still here", "nobody was disconnected")
		o.sawNot("left", "is gone", "lost")
	}

	cat := p[2]
	cat.Signal(unix.SIGKILL)
	ann.Want("cat is ", "she is gone, or lost")
	again := start(t, cat.all, cat.name, "cat", "--key", file)
	again.Want("you are cat in lobby", "with the new key")
	together(ann, p[1], again)
}

// TestCertificates: each member has a certificate that is good for both sides.
func TestCertificates(t *testing.T) {
	p := three(t, securitytest.NewCerts(t).Server("member")...)
	p[0].Say("hello")
	for _, o := range p[1:] {
		o.Want("ann: hello", "a line travels")
	}
}

// TestAnotherKey: a member that has another key is alone, and it and the others report the reason,
// once.
func TestAnotherKey(t *testing.T) {
	all := freeMembers(t, 2)
	ann := start(t, all, all[0], "ann", "--key", securitytest.KeyFile(t, securitytest.Key(t, "members")))
	ann.Want("you are ann in lobby", "it has joined")
	eve := start(t, all, all[1], "eve", "--key", securitytest.KeyFile(t, securitytest.Key(t, "members")))
	eve.Want(all[0]+" is there, and cannot be talked to", "the key is another one")
	ann.Want(all[1]+" is there, and cannot be talked to", "the key is another one")
}

func TestSecurityOfTheCommandLine(t *testing.T) {
	all := freeMembers(t, 1)
	both := start(t, all, all[0], "ann", "--insecure", "--key", "x")
	both.Want("--key or --insecure?", "an error a user understands")
	both.Exit(1, "an error")
	missing := start(t, all, all[0], "ann", "--key", "/nowhere")
	missing.Want("--key: open /nowhere", "an error a user understands")
	missing.Exit(1, "an error")
}
