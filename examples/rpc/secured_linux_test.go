package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
)

// TestKeys: only clients whose key is in the store's file may use the store.
func TestKeys(t *testing.T) {
	ann, bob := securitytest.Key(t, "ann"), securitytest.Key(t, "bob")
	ofServer, ofAnn := securitytest.KeyFile(t, ann, bob), securitytest.KeyFile(t, ann)
	srv, addr := startServerWith(t, "serve", "--addr", "127.0.0.1:0", "--key", ofServer)
	for _, c := range []struct{ line, want string }{
		{"put k v --key " + ofAnn, "revision 1\n"},
		{"get k --key " + securitytest.KeyFile(t, bob), "v\n"},
		{"load --duration 50ms --callers 8 --keys 4 --key " + ofAnn, "calls in"},
	} {
		if got, err := output(t, append(strings.Fields(c.line), "--addr", addr)...); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.line, got, err, c.want)
		}
	}
	watch := start(t, "watch", "--addr", addr, "--key", ofAnn)
	watch.out.await(t, "\tk\t")
	refused := func(line, why string) {
		t.Helper()
		if got, err := output(t, append(strings.Fields(line), "--addr", addr)...); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %q, %v; want %q", line, got, err, why)
		}
	}
	refused("get k --key "+securitytest.KeyFile(t, securitytest.Key(t, "ann")), "no key has this id")
	refused("get k", "another mode or suite")
	if got, err := output(t, "get", "k", "--addr", "192.0.2.1"); err == nil || !strings.Contains(err.Error(), "say how it is secured, with --key FILE") {
		t.Errorf("beyond loopback: %q, %v", got, err)
	}
	refused("get k --insecure", "another mode or suite")
	refused("get k --insecure --key "+ofAnn, "--key or --insecure?")

	// bob is no longer admitted, and ann keeps her connection
	securitytest.Replace(t, ofServer, ann)
	srv.log.await(t, "keys of peers: 1")
	refused("get k --key "+securitytest.KeyFile(t, bob), "no key has this id")
	if _, err := output(t, "put", "late", "1", "--addr", addr, "--key", ofAnn); err != nil {
		t.Error(err)
	}
	watch.out.await(t, "\tlate\t")
	if err := os.Chmod(ofAnn, 0o660); err != nil {
		t.Fatal(err)
	}
	refused("get k --key "+ofAnn, "chmod 600 "+ofAnn)
	if err := srv.stop(); err != nil {
		t.Error(err)
	}
}

// TestCertificates: only clients whose certificate the authority has signed may use the store.
func TestCertificates(t *testing.T) {
	ours := securitytest.NewCerts(t)
	_, addr := startServerWith(t, append([]string{"serve", "--addr", "127.0.0.1:0"}, ours.Server("server")...)...)
	of := func(line string, flags []string) (string, error) {
		return output(t, append(append(strings.Fields(line), "--addr", addr), flags...)...)
	}
	ann := ours.Client("ann", "ann")
	if got, err := of("put k v", ann); err != nil || got != "revision 1\n" {
		t.Errorf("with a certificate: %q, %v", got, err)
	}
	if got, err := of("get k", ann[:2]); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without: %q, %v", got, err)
	}
	if got, err := of("get k", securitytest.NewCerts(t).Client("ann", "ann")); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("of another authority: %q, %v", got, err)
	}
}
