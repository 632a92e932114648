package secure

import (
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
)

// What testdata/peer.py has written from docs/security-wire.md alone: python3 testdata/peer.py
// vectors testdata.

var vectorSuites = map[string]Suite{
	"aes": AES256GCM, "chacha": ChaCha20Poly1305, "tls-aes-128": TLSAES128GCM, "tls-aes-256": TLSAES256GCM,
}

// vectors reads a file of testdata.
func vectors[T any](t *testing.T, name string) []T {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []T }
	if err := json.Unmarshal(b, &file); err != nil || len(file.Vectors) == 0 {
		t.Fatalf("%s: %d vectors, %v", name, len(file.Vectors), err)
	}
	return file.Vectors
}

type pskVector struct {
	Suite           string
	Identity, Key   octets
	Device          Device
	Client, Server  string
	Port            uint16
	Hint            uint32
	ClientEphemeral octets `json:"client_ephemeral"`
	ServerEphemeral octets `json:"server_ephemeral"`
	Request, Reply  octets
	ClientSecret    octets `json:"client_secret"`
	ServerSecret    octets `json:"server_secret"`
}

func (v *pskVector) binding(t *testing.T) Binding {
	t.Helper()
	b := Binding{Device: v.Device, Hint: v.Hint}
	if v.Client != "" {
		b.Client = netip.MustParseAddr(v.Client)
		b.Server = netip.AddrPortFrom(netip.MustParseAddr(v.Server), v.Port)
	}
	return b
}

func fixed(t *testing.T, b octets) *ecdh.PrivateKey {
	t.Helper()
	key, err := ecdh.X25519().NewPrivateKey(b)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestPSKVectors: request, reply and secrets are those of the other implementation.
func TestPSKVectors(t *testing.T) {
	for i, v := range vectors[pskVector](t, "psk.json") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s, who := vectorSuites[v.Suite], &Credential{string(v.Identity), [KeyLen]byte(v.Key)}
			request, reply, hint := Hello(v.Request), Hello(v.Reply), make([]byte, HintLen)
			PutHint(hint, v.Hint)
			client, data, err := newPSKClient(who, s, v.binding(t), request, fixed(t, v.ClientEphemeral))
			if err != nil {
				t.Fatal(err)
			}
			wantBytes(t, "request", slices.Concat(request[:], hint, data[:]), v.Request)
			_, answer, err := newPSKServer(keys(t, who), s, v.binding(t), request, data[:], reply, fixed(t, v.ServerEphemeral))
			if err != nil {
				t.Fatal(err)
			}
			wantBytes(t, "reply", append(reply[:], answer[:]...), v.Reply)
			channel, err := client.Finish(reply, answer[:])
			if err != nil {
				t.Fatal(err)
			}
			wantBytes(t, "the client's secret", channel.Seal.secret, v.ClientSecret)
			wantBytes(t, "the server's secret", channel.Open.secret, v.ServerSecret)
		})
	}
}

type recordsVector struct {
	Suite   string
	Secret  octets
	Records []struct{ Plaintext, Sealed octets }
	Updated octets
	Large   struct {
		Number          uint64
		Message, Sealed octets
	}
	Pattern struct {
		Number uint64
		Length int
		SHA256 octets
	}
}

// TestRecordVectors: records, a key update and large messages are those of the other
// implementation, in every suite.
func TestRecordVectors(t *testing.T) {
	all := vectors[recordsVector](t, "records.json")
	if len(all) != len(suites) {
		t.Errorf("vectors of %d suites, want %d", len(all), len(suites))
	}
	for _, v := range all {
		t.Run(v.Suite, func(t *testing.T) {
			channel, err := newChannel(vectorSuites[v.Suite], v.Secret, v.Secret)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range v.Records {
				wantBytes(t, "a record", seal(t, channel.Seal, string(r.Plaintext)), r.Sealed)
			}
			if err := channel.Seal.Update(); err != nil {
				t.Fatal(err)
			}
			wantBytes(t, "after an update", seal(t, channel.Seal, "after an update"), v.Updated)

			b := make([]byte, LargeLen(len(v.Large.Message)))
			copy(b, v.Large.Message)
			channel.SealLarge.last = v.Large.Number - 1
			m, _, err := channel.SealLarge.Begin(b, b[:len(v.Large.Message)])
			if err != nil {
				t.Fatal(err)
			}
			m.Next()
			wantBytes(t, "a large message", b, v.Large.Sealed)
			b, number := sealLarge(t, channel.SealLarge, v.Pattern.Length)
			sum := sha256.Sum256(b)
			if wantBytes(t, "a larger one", sum[:], v.Pattern.SHA256); number != v.Pattern.Number {
				t.Errorf("its number is %d, want %d", number, v.Pattern.Number)
			}
		})
	}
}
