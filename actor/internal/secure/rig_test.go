package secure

import (
	"bytes"
	"crypto/ecdh"
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

var (
	requestHello = Hello{0x7E, 0xDA, 3, HintLen + PSKRequestLen, 0, 32, 1, 64, 0, 16, 0, 0}
	replyHello   = Hello{0x7E, 0xDA, 3, PSKReplyLen, 0, 16, 1, 16, 1, 0, 0, 0}
	route        = Binding{DeviceIWARP, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddrPort("192.0.2.2:7471"), 77}
	pskSuites    = []Suite{AES256GCM, ChaCha20Poly1305}
)

// tester is what testing and rapid have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func credential(identity string, key byte) *Credential {
	c := &Credential{Identity: identity}
	for i := range c.Key {
		c.Key[i] = key + byte(i)
	}
	return c
}

func keys(t tester, list ...*Credential) *Keys {
	t.Helper()
	var all []Credential
	for _, c := range list {
		all = append(all, *c)
	}
	k, err := NewKeys(all...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// private returns an X25519 key made of one number.
func private(t testing.TB, seed byte) *ecdh.PrivateKey {
	t.Helper()
	key, err := ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// conversation is one PSK handshake, and its two sides afterwards.
type conversation struct {
	request [PSKRequestLen]byte
	reply   [PSKReplyLen]byte
	first   []byte // the client's first message, sealed
	client  *Channel
	server  *Channel
}

const hello = "hello, server"

func talk(t tester, s Suite) *conversation {
	t.Helper()
	c := &conversation{}
	who := credential("node-1", 1)
	client, request, err := NewPSKClient(who, s, route, requestHello)
	if err != nil {
		t.Fatal(err)
	}
	server, reply, err := NewPSKServer(keys(t, who), s, route, requestHello, request[:], replyHello)
	if err != nil {
		t.Fatal(err)
	}
	c.request, c.reply = request, reply
	if c.client, err = client.Finish(replyHello, reply[:]); err != nil {
		t.Fatal(err)
	}
	if c.first, err = c.client.Seal.Seal(nil, []byte(hello)); err != nil {
		t.Fatal(err)
	}
	first, identity, channel, err := server.Confirm(nil, c.first)
	if err != nil || string(first) != hello || identity != "node-1" {
		t.Fatalf("the first message: %q of %q, %v", first, identity, err)
	}
	c.server = channel
	return c
}

// exchange sends a message from each side and opens it at the other.
func (c *conversation) exchange(t testing.TB) {
	t.Helper()
	for _, way := range []struct {
		out *Sealer
		in  *Opener
	}{{c.client.Seal, c.server.Open}, {c.server.Seal, c.client.Open}} {
		sealed, err := way.out.Seal(nil, []byte("ping"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := way.in.Open(nil, sealed)
		if err != nil || string(got) != "ping" {
			t.Fatalf("opened %q, %v", got, err)
		}
	}
}

func wantTampered(t tester, why string, err error) {
	t.Helper()
	var tampered *TamperedError
	if !errors.As(err, &tampered) || !errors.Is(err, unix.EBADMSG) {
		t.Errorf("%s: %v, want a *TamperedError", why, err)
	}
}

func wantRefused(t testing.TB, why string, err error) {
	t.Helper()
	var failed *HandshakeError
	if !errors.As(err, &failed) || !errors.Is(err, unix.EACCES) {
		t.Errorf("%s: %v, want a *HandshakeError", why, err)
	}
}

func wantConfig(t testing.TB, why string, err error) {
	t.Helper()
	var config *ConfigError
	if !errors.As(err, &config) || !errors.Is(err, unix.EINVAL) {
		t.Errorf("%s: %v, want a *ConfigError", why, err)
	}
}

// flips calls try with b, one bit of it changed, for each byte.
func flips(b []byte, try func(at int, changed []byte)) {
	for at := range b {
		changed := bytes.Clone(b)
		changed[at] ^= 1 << (at % 8)
		try(at, changed)
	}
}
