package secure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
)

func TestPSK(t *testing.T) {
	for _, s := range pskSuites {
		talk(t, s).exchange(t)
	}
}

// try finishes a client's handshake with the answer to its request.
func try(t *testing.T, who *Credential, s Suite, b Binding,
	answer func(request [PSKRequestLen]byte) (Hello, []byte),
) error {
	t.Helper()
	client, request, err := NewPSKClient(who, s, b, requestHello)
	if err != nil {
		t.Fatal(err)
	}
	hello, data := answer(request)
	_, err = client.Finish(hello, data)
	return err
}

// Both sides need the same key, suite, identity, device, addresses and hellos.
func TestPSKNeedsTheSame(t *testing.T) {
	who := credential("node-1", 1)
	another := route
	another.Client = netip.MustParseAddr("192.0.2.7")
	port := route
	port.Server = netip.AddrPortFrom(route.Server.Addr(), 7472)
	device := route
	device.Device = DeviceInfiniBand
	hint := route
	hint.Hint++
	for _, c := range []struct {
		why    string
		keys   *Keys
		suite  Suite
		route  Binding
		change int // a byte of the request's hello
	}{
		{"another suite", keys(t, who), ChaCha20Poly1305, route, -1},
		{"another client", keys(t, who), AES256GCM, another, -1},
		{"another port", keys(t, who), AES256GCM, port, -1},
		{"another device", keys(t, who), AES256GCM, device, -1},
		{"another hint", keys(t, who), AES256GCM, hint, -1},
		{"no addresses", keys(t, who), AES256GCM, Binding{Device: DeviceIWARP, Hint: route.Hint}, -1},
		{"an earlier version", keys(t, who), AES256GCM, route, 2},
		{"fewer credits", keys(t, who), AES256GCM, route, 5},
		{"no features", keys(t, who), AES256GCM, route, 6},
		{"a smaller limit", keys(t, who), AES256GCM, route, 9},
	} {
		err := try(t, who, AES256GCM, route, func(request [PSKRequestLen]byte) (Hello, []byte) {
			seen := requestHello
			if c.change >= 0 {
				seen[c.change] ^= 1
			}
			_, reply, err := NewPSKServer(c.keys, c.suite, c.route, seen, request[:], replyHello)
			if err != nil {
				t.Fatal(err)
			}
			return replyHello, reply[:]
		})
		wantRefused(t, c.why, err)
	}
}

// A peer with another key of a known id does not exist, but a peer may claim an id.
func TestPSKStrangers(t *testing.T) {
	k := keys(t, credential("node-1", 1))
	for _, c := range []*Credential{credential("node-1", 2), credential("node-2", 1)} {
		_, request, err := NewPSKClient(c, AES256GCM, route, requestHello)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = NewPSKServer(k, AES256GCM, route, requestHello, request[:], replyHello)
		wantRefused(t, c.Identity, err)
		var unknown *UnknownKeyError
		if !errors.As(err, &unknown) || unknown.ID != KeyID(request[publicLen:]) {
			t.Errorf("%s: %v, want an *UnknownKeyError", c.Identity, err)
		}
	}
	liar := credential("node-1", 2)
	client, request, err := NewPSKClient(liar, AES256GCM, route, requestHello)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := credential("node-1", 1).deriveKey()
	if err != nil {
		t.Fatal(err)
	}
	copy(request[publicLen:], id[:])
	server, reply, err := NewPSKServer(k, AES256GCM, route, requestHello, request[:], replyHello)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Finish(replyHello, reply[:])
	wantRefused(t, "the liar sees a reply that it cannot open", err)
	_, _, channel, err := server.Confirm(nil, make([]byte, 64))
	wantRefused(t, "the liar's first message", err)
	if channel != nil {
		t.Error("a channel with a liar")
	}
}

// TestPSKFlips: no change on the way results in a channel.
func TestPSKFlips(t *testing.T) {
	who := credential("node-1", 1)
	k := keys(t, who)
	for _, s := range pskSuites {
		client, request, err := newPSKClient(who, s, route, requestHello, private(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		server, reply, err := newPSKServer(k, s, route, requestHello, request[:], replyHello, private(t, 2))
		if err != nil {
			t.Fatal(err)
		}
		channel, err := client.Finish(replyHello, reply[:])
		if err != nil {
			t.Fatal(err)
		}
		first, err := channel.Seal.Seal(nil, []byte(hello))
		if err != nil {
			t.Fatal(err)
		}
		whole := append(requestHello[:], request[:]...)
		flips(whole, func(at int, b []byte) {
			server, _, err := newPSKServer(k, s, route, Hello(b), b[HelloLen:], replyHello, private(t, 2))
			if err == nil {
				_, _, _, err = server.Confirm(nil, first)
			}
			// The top bit of a public key means nothing in X25519, but it is in the transcript.
			wantRefused(t, "a changed request", err)
		})
		whole = append(replyHello[:], reply[:]...)
		flips(whole, func(at int, b []byte) {
			client, _, err := newPSKClient(who, s, route, requestHello, private(t, 1))
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Finish(Hello(b), b[HelloLen:])
			wantRefused(t, "a changed reply", err)
		})
		flips(first, func(at int, b []byte) {
			server, _, err := newPSKServer(k, s, route, requestHello, request[:], replyHello, private(t, 2))
			if err != nil {
				t.Fatal(err)
			}
			_, _, _, err = server.Confirm(nil, b)
			wantRefused(t, "a changed first message", err)
			wantTampered(t, "a changed first message", err)
		})
		if _, _, _, err := server.Confirm(nil, first); err != nil {
			t.Errorf("what was not changed: %v", err)
		}
	}
}

// TestPSKTopBit: X25519 ignores one bit of a public key. The transcript does not.
func TestPSKTopBit(t *testing.T) {
	who := credential("node-1", 1)
	err := try(t, who, AES256GCM, route, func(request [PSKRequestLen]byte) (Hello, []byte) {
		request[publicLen-1] ^= 0x80
		_, reply, err := NewPSKServer(keys(t, who), AES256GCM, route, requestHello, request[:], replyHello)
		if err != nil {
			t.Fatal(err)
		}
		return replyHello, reply[:]
	})
	wantRefused(t, "the top bit", err)
}

// lowOrder are X25519 public keys whose shared secret is zeros, whatever the other key is.
var lowOrder = [][]byte{
	make([]byte, publicLen),
	append([]byte{1}, make([]byte, publicLen-1)...),
	{0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00},
	{0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57},
	append(append([]byte{0xec}, bytes.Repeat([]byte{0xff}, publicLen-2)...), 0x7f), // p-1
	append(append([]byte{0xed}, bytes.Repeat([]byte{0xff}, publicLen-2)...), 0x7f), // p
	append(append([]byte{0xee}, bytes.Repeat([]byte{0xff}, publicLen-2)...), 0x7f), // p+1
}

func TestPSKLowOrder(t *testing.T) {
	who := credential("node-1", 1)
	k := keys(t, who)
	for _, point := range lowOrder {
		_, request, err := NewPSKClient(who, AES256GCM, route, requestHello)
		if err != nil {
			t.Fatal(err)
		}
		copy(request[:], point)
		_, _, err = NewPSKServer(k, AES256GCM, route, requestHello, request[:], replyHello)
		wantRefused(t, "a request's", err)
		if err != nil && !strings.Contains(err.Error(), "low order point") {
			t.Errorf("%x: %v, want that it is of low order", point, err)
		}
		err = try(t, who, AES256GCM, route, func([PSKRequestLen]byte) (Hello, []byte) {
			return replyHello, append(bytes.Clone(point), make([]byte, PSKReplyLen-publicLen)...)
		})
		wantRefused(t, "a reply's", err)
		if err != nil && !strings.Contains(err.Error(), "low order point") {
			t.Errorf("%x: %v, want that it is of low order", point, err)
		}
	}
}

// TestPSKLengths: a handshake of any other length is refused.
func TestPSKLengths(t *testing.T) {
	who := credential("node-1", 1)
	for n := range 128 {
		if n != PSKRequestLen {
			_, _, err := NewPSKServer(keys(t, who), AES256GCM, route, requestHello, make([]byte, n), replyHello)
			wantRefused(t, "a request", err)
		}
		if n != PSKReplyLen {
			err := try(t, who, AES256GCM, route, func([PSKRequestLen]byte) (Hello, []byte) { return replyHello, make([]byte, n) })
			wantRefused(t, "a reply", err)
		}
	}
}

// TestPSKLongRequest: the right request, and a byte more.
func TestPSKLongRequest(t *testing.T) {
	who := credential("node-1", 1)
	_, request, err := NewPSKClient(who, AES256GCM, route, requestHello)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = NewPSKServer(keys(t, who), AES256GCM, route, requestHello, append(request[:], 0), replyHello)
	wantRefused(t, "a byte too many", err)
}

// TestPSKReplay: a repeated request gets a reply, and nothing further.
func TestPSKReplay(t *testing.T) {
	who := credential("node-1", 1)
	c := talk(t, AES256GCM)
	server, reply, err := NewPSKServer(keys(t, who), AES256GCM, route, requestHello, c.request[:], replyHello)
	if err != nil {
		t.Fatal(err)
	}
	if reply == c.reply {
		t.Error("the same reply twice: its key is not new")
	}
	_, _, _, err = server.Confirm(nil, c.first)
	wantRefused(t, "the first message again", err)
	_, _, _, err = server.Confirm(nil, c.first)
	wantRefused(t, "a second attempt", err)

	err = try(t, who, AES256GCM, route, func([PSKRequestLen]byte) (Hello, []byte) { return replyHello, c.reply[:] })
	wantRefused(t, "the reply to another request", err)
}

// TestPSKOnce: a handshake that is over is not gone on with.
func TestPSKOnce(t *testing.T) {
	who := credential("node-1", 1)
	client, request, err := NewPSKClient(who, AES256GCM, route, requestHello)
	if err != nil {
		t.Fatal(err)
	}
	server, reply, err := NewPSKServer(keys(t, who), AES256GCM, route, requestHello, request[:], replyHello)
	if err != nil {
		t.Fatal(err)
	}
	channel, err := client.Finish(replyHello, reply[:])
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Finish(replyHello, reply[:])
	wantRefused(t, "a second reply", err)
	if _, _, _, err := server.Confirm(nil, seal(t, channel.Seal, "one")); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = server.Confirm(nil, seal(t, channel.Seal, "two"))
	wantRefused(t, "a second first message", err)

	server, _, err = NewPSKServer(keys(t, who), AES256GCM, route, requestHello, request[:], replyHello)
	if err != nil {
		t.Fatal(err)
	}
	server.Forget()
	server.Forget()
	_, _, _, err = server.Confirm(nil, make([]byte, 64))
	wantRefused(t, "a handshake that was given up", err)
}

// TestPSKReflection: a side's messages do not come back to it as its peer's.
func TestPSKReflection(t *testing.T) {
	c := talk(t, AES256GCM)
	sealed, err := c.client.Seal.Seal(nil, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.client.Open.Open(nil, sealed)
	wantTampered(t, "our own message", err)
}

// TestPSKRotation: two keys of an identity are valid together, a third is too many.
func TestPSKRotation(t *testing.T) {
	older, newer := credential("node-1", 1), credential("node-1", 2)
	k := keys(t, older, newer, credential("node-2", 4))
	for _, c := range []*Credential{older, newer, credential("node-2", 4)} {
		client, request, err := NewPSKClient(c, AES256GCM, route, requestHello)
		if err != nil {
			t.Fatal(err)
		}
		server, reply, err := NewPSKServer(k, AES256GCM, route, requestHello, request[:], replyHello)
		if err != nil {
			t.Fatal(err)
		}
		channel, err := client.Finish(replyHello, reply[:])
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := channel.Seal.Seal(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, identity, _, err := server.Confirm(nil, sealed); err != nil || identity != c.Identity {
			t.Errorf("confirmed as %q, %v, want %q", identity, err, c.Identity)
		}
	}
	_, err := NewKeys(*older, *newer, *credential("node-1", 3))
	wantConfig(t, "three keys", err)
	_, err = NewKeys(*older, *older)
	wantConfig(t, "the same key twice", err)
	_, err = NewKeys(*older, *credential("node-2", 1))
	wantConfig(t, "one key of two identities", err)
}

func TestCredentials(t *testing.T) {
	for why, c := range map[string]*Credential{
		"no identity":       credential("", 1),
		"too long":          credential(strings.Repeat("x", MaxIdentity+1), 1),
		"a key that is not": {Identity: "node-1"},
	} {
		_, err := NewKeys(*c)
		wantConfig(t, why, err)
		_, _, err = NewPSKClient(c, AES256GCM, route, requestHello)
		wantConfig(t, why, err)
	}
	who := credential(strings.Repeat("x", MaxIdentity), 1)
	keys(t, who)
	for _, s := range []Suite{0, TLSAES128GCM, TLSAES256GCM, 99} {
		_, _, err := NewPSKClient(who, s, route, requestHello)
		wantConfig(t, s.String(), err)
		_, _, err = NewPSKServer(keys(t, who), s, route, requestHello, make([]byte, PSKRequestLen), replyHello)
		wantConfig(t, s.String(), err)
	}
}

// TestCredentialsInLogs: a key does not get there.
func TestCredentialsInLogs(t *testing.T) {
	c := *credential("node-1", 1)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
		for _, v := range []any{c, &c} {
			if got := fmt.Sprintf(format, v); got != "node-1" {
				t.Errorf("%s: %s", format, got)
			}
		}
	}
	if b, err := json.Marshal(map[string]any{"who": c, "list": []*Credential{&c}}); err != nil || string(b) != `{"list":["node-1"],"who":"node-1"}` {
		t.Errorf("%s, %v", b, err)
	}
	var text, js bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", "who", c)
	slog.New(slog.NewJSONHandler(&js, nil)).Info("x", "who", &c)
	if !strings.HasSuffix(text.String(), " who=node-1\n") || !strings.HasSuffix(js.String(), `"who":"node-1"}`+"\n") {
		t.Errorf("%s%s", text.String(), js.String())
	}
}
