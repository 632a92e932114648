package secure

import (
	"bytes"
	"crypto/ecdh"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

type octets []byte

func (o *octets) UnmarshalText(text []byte) (err error) {
	*o, err = hex.DecodeString(string(text))
	return err
}

type noiseVector struct {
	Name      string   `json:"protocol_name"`
	Prologue  octets   `json:"init_prologue"`
	PSKs      []octets `json:"init_psks"`
	Initiator octets   `json:"init_ephemeral"`
	Responder octets   `json:"resp_ephemeral"`
	Hash      octets   `json:"handshake_hash"`
	Messages  []struct{ Payload, Ciphertext octets }
}

// TestNoise: both handshakes and the messages behind them are those of other implementations.
// noise.json is made by peer.py. cacophony.json has those of the Haskell library cacophony (public
// domain) for our two handshakes, in the format that several implementations publish.
func TestNoise(t *testing.T) {
	for _, name := range []string{"noise.json", "cacophony.json"} {
		t.Run(name, func(t *testing.T) { checkNoise(t, "testdata/"+name) })
	}
}

// checkNoise checks the vectors of a file, which has some for each of our suites.
func checkNoise(t *testing.T, name string) {
	var file struct{ Vectors []noiseVector }
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	seen := map[Suite]int{}
	for _, v := range file.Vectors {
		for _, suite := range pskSuites {
			if noiseName(suite) == v.Name {
				seen[suite]++
				t.Run(v.Name, func(t *testing.T) { v.check(t, suite) })
			}
		}
	}
	if len(seen) != len(pskSuites) {
		t.Errorf("vectors of %d suites, want %d", len(seen), len(pskSuites))
	}
}

func (v *noiseVector) check(t *testing.T, s Suite) {
	initiator := v.side(t, s, v.Initiator)
	responder := v.side(t, s, v.Responder)
	ie, re := initiator.e.PublicKey(), responder.e.PublicKey()

	sealed, err := initiator.makeFirst(ie.Bytes(), v.Messages[0].Payload)
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, "message 1", append(ie.Bytes(), sealed...), v.Messages[0].Ciphertext)
	again, err := responder.makeFirst(ie.Bytes(), v.Messages[0].Payload)
	if err != nil || !bytes.Equal(sealed, again) {
		t.Fatalf("message 1 made by the responder: %x, %v", again, err)
	}
	responder.re = ie
	if sealed, err = responder.writeSecond(v.Messages[1].Payload); err != nil {
		t.Fatal(err)
	}
	wantBytes(t, "message 2", append(re.Bytes(), sealed...), v.Messages[1].Ciphertext)
	payload, err := initiator.readSecond(re.Bytes(), sealed)
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, "payload 2", payload, v.Messages[1].Payload)
	if initiator.h != responder.h {
		t.Error("the hashes differ")
	}
	wantBytes(t, "the handshake's hash", initiator.h[:], v.Hash)
	v.transport(t, initiator, responder)
}

func (v *noiseVector) side(t *testing.T, s Suite, e octets) *noise {
	t.Helper()
	key, err := ecdh.X25519().NewPrivateKey(e)
	if err != nil {
		t.Fatal(err)
	}
	return newNoise(s, v.Prologue, [pskLen]byte(v.PSKs[0]), key)
}

// transport checks the secrets with the messages that Noise itself would send with them: we make
// other keys of them.
func (v *noiseVector) transport(t *testing.T, sides ...*noise) {
	var first [2][]byte
	for i, side := range sides {
		a, b, err := side.split()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = [2][]byte{a, b}
		} else if !slices.EqualFunc(first[:], [][]byte{a, b}, bytes.Equal) {
			t.Fatal("the secrets of the two sides differ")
		}
	}
	suite := sides[0].suite
	for i, m := range v.Messages[2:] {
		cipher := noise{suite: suite, n: uint64(i / 2)}
		if err := cipher.setKey(first[i%2]); err != nil {
			t.Fatal(err)
		}
		cipher.n = uint64(i / 2)
		wantBytes(t, "a message", cipher.aead.Seal(nil, cipher.nextNonce(), m.Payload, nil), m.Ciphertext)
	}
}

func wantBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %x, want %x", what, got, want)
	}
}
