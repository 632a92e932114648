package main

import (
	"testing"

	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
)

// TestCertificates: a host with a certificate, and clients with a certificate, without one, and
// with one of another authority.
func TestCertificates(t *testing.T) {
	ours, theirs := securitytest.NewCerts(t), securitytest.NewCerts(t)
	addr := freeAddr(t)
	start(t, "host", append([]string{"serve", addr}, ours.Server("server")...)...).Want("hosting on", "it listens")
	join := func(nick string, args ...string) []string {
		return append([]string{"join", addr, "--nick", nick}, args...)
	}
	ann := start(t, "ann", join("ann", ours.Client("ann", "ann")...)...)
	ann.Want("you are ann in lobby", "the same authority has signed both")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no certificate":         {ours.Flags("ann")[:2], "certificate required"},
		"another authority":      {theirs.Client("ann", "ann"), "certificate signed by unknown authority"},
		"another's certificate":  {append(ours.Flags("")[:2], theirs.Client("eve", "ann")[2:]...), "unknown certificate authority"},
		"a key in place of them": {[]string{"--key", securitytest.KeyFile(t, securitytest.Key(t, "ann"))}, "another mode or suite"},
	} {
		t.Run(name, func(t *testing.T) {
			eve := start(t, "eve", join("eve", tt.args...)...)
			eve.CloseInput()
			eve.Want(tt.want, "why she is not let in")
			eve.Exit(1, "she is not let in")
		})
	}
	bob := start(t, "bob", join("bob", ours.Client("bob", "bob")...)...)
	bob.Want("you are bob in lobby with 1 other;", "nobody else was let in")
	ann.Say("hello")
	bob.Want("ann ✓: hello", "a line travels, and her certificate is ann's")
}
