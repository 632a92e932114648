package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"
	"strings"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// probes checks the outcome of probing a server with flags. Without want the server is reached.
func probes(t *testing.T, addr, flags, want string) {
	t.Helper()
	err := runCommand(t.Context(), append([]string{"probe", addr}, strings.Fields(flags)...), io.Discard, io.Discard)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("with %q: %v, want %q", flags, err, want)
	}
}

// A server accepts a client with a key that keygen made and that the server has, and no other
// client, also after its keys were replaced while it runs.
func TestProbeWithKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	made(t, "keygen ann")
	made(t, "keygen bob")
	keys := new(rdma.Keyring)
	use := func(file string) {
		t.Helper()
		list, err := keyfile.Load(file)
		if err == nil {
			err = keyfile.Use(keys, list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	use("ann.key")
	addr := serveSecured(t, &rdma.Security{Mode: rdma.PSK, Keys: keys}, false)
	probes(t, addr, "--key ann.key", "")
	probes(t, addr, "--key bob.key", "no key has this id")
	probes(t, addr, "", "another mode or suite")
	use("bob.key")
	probes(t, addr, "--key bob.key", "")
	probes(t, addr, "--key ann.key", "no key has this id")
	if err := os.Chmod("bob.key", 0o644); err != nil {
		t.Fatal(err)
	}
	probes(t, addr, "--key bob.key", "chmod 600 bob.key")
}

// A server accepts a client with a certificate that certs made for its authority, and no other one.
func TestProbeWithCertificates(t *testing.T) {
	t.Chdir(t.TempDir())
	made(t, "certs")
	made(t, "certs --dir others")
	pair, err := tls.LoadX509KeyPair("certs/server.pem", "certs/server-key.pem")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("certs/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	addr := serveSecured(t, &rdma.Security{Mode: rdma.TLS, TLS: &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}}, false)
	const client = " --tls-cert certs/client.pem --tls-key certs/client-key.pem"
	probes(t, addr, "--tls-ca certs/ca.pem"+client, "")
	probes(t, addr, "--tls-ca certs/ca.pem", "certificate required")
	probes(t, addr, "--tls-ca others/ca.pem"+client, "certificate signed by unknown authority")
	probes(t, addr, "--tls-ca certs/ca.pem --tls-cert others/client.pem --tls-key others/client-key.pem", "unknown certificate authority")
	probes(t, addr, "--tls-ca certs/ca.pem --tls-cert certs/client.pem --tls-key others/client-key.pem", "private key does not match")
	probes(t, addr, "--tls-ca certs/server-key.pem", "no certificates in PEM")
	probes(t, addr, "--tls-ca nowhere.pem", "no such file")
	if err := os.Chmod("certs/client-key.pem", 0o604); err != nil {
		t.Fatal(err)
	}
	probes(t, addr, "--tls-ca certs/ca.pem"+client, "chmod 600 certs/client-key.pem")
}

// Flags of different kinds do not go together, and an address beyond loopback needs some of them.
func TestSecureFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--key a --insecure":    "--key or --insecure?",
		"--tls-ca a --key b":    "neither --key nor --insecure",
		"--tls-ca a --insecure": "neither --key nor --insecure",
		"--tls-cert a":          "go together",
		"--tls-key a":           "go together",
		"":                      "secure it with --key FILE",
	} {
		probes(t, "192.0.2.1", flags, want)
	}
}
