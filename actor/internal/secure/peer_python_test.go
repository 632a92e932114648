//go:build python

package secure

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// pythonPeer is testdata/peer.py, which is written from docs/security-wire.md and knows nothing of
// this package. It needs Debian's python3-cryptography.
type pythonPeer struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

func startPython(t *testing.T) *pythonPeer {
	t.Helper()
	cmd := exec.Command("python3", "testdata/peer.py", "talk") // it ends when its input does
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // the peer ends
		if err := cmd.Wait(); err != nil {
			t.Errorf("the peer: %v", err)
		}
	})
	return &pythonPeer{t, in, bufio.NewReader(out)}
}

func (p *pythonPeer) say(line map[string]any) {
	p.t.Helper()
	for name, value := range line {
		if b, ok := value.([]byte); ok {
			line[name] = hex.EncodeToString(b)
		}
	}
	if err := json.NewEncoder(p.in).Encode(line); err != nil {
		p.t.Fatal(err)
	}
}

// hear returns the bytes of that name in the next line.
func (p *pythonPeer) hear(name string) []byte {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	var fields map[string]octets
	if err := json.Unmarshal(line, &fields); err != nil {
		p.t.Fatal(err)
	}
	return fields[name]
}

func (p *pythonPeer) begin(role, suite string, who *Credential, more map[string]any) {
	p.t.Helper()
	line := map[string]any{
		"role": role, "suite": suite, "key": who.Key[:], "identity": []byte(who.Identity), "device": int(route.Device),
		"client": route.Client.String(), "server": route.Server.Addr().String(), "port": route.Server.Port(), "hint": route.Hint,
	}
	for name, value := range more {
		line[name] = value
	}
	p.say(line)
}

// TestPythonVectors: the vectors in testdata are the output of the peer.
func TestPythonVectors(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "python3", "testdata/peer.py", "vectors", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"noise.json", "psk.json", "records.json"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("testdata", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("testdata/%s is not what peer.py writes, %v", name, err)
		}
	}
}

// TestPythonClient: it dials us.
func TestPythonClient(t *testing.T) {
	who := credential("node-1", 1)
	for name, s := range map[string]Suite{"aes": AES256GCM, "chacha": ChaCha20Poly1305} {
		p := startPython(t)
		p.begin("client", name, who, map[string]any{"hello": requestHello[:]})
		request := p.hear("request")
		server, reply, err := NewPSKServer(keys(t, who), s, route, Hello(request), wantHint(t, request[HelloLen:]), replyHello)
		if err != nil {
			t.Fatal(err)
		}
		p.say(map[string]any{"reply": append(replyHello[:], reply[:]...)})
		first, identity, channel, err := server.Confirm(nil, p.hear("sealed"))
		if err != nil || string(first) != "first" || identity != who.Identity {
			t.Fatalf("%s: %q of %q, %v", name, first, identity, err)
		}
		p.converse(channel)
	}
}

// wantHint takes route's hint off the bytes behind a request's hello.
func wantHint(t *testing.T, b []byte) (rest []byte) {
	t.Helper()
	hint, rest, ok := ParseHint(b)
	if !ok || hint != route.Hint {
		t.Fatalf("the hint is %d, %v, want %d", hint, ok, route.Hint)
	}
	return rest
}

// TestPythonServer: we dial it.
func TestPythonServer(t *testing.T) {
	who := credential("node-1", 1)
	for name, s := range map[string]Suite{"aes": AES256GCM, "chacha": ChaCha20Poly1305} {
		p := startPython(t)
		client, request, err := NewPSKClient(who, s, route, requestHello)
		if err != nil {
			t.Fatal(err)
		}
		hint := make([]byte, HintLen)
		PutHint(hint, route.Hint)
		p.begin("server", name, who, map[string]any{"request": slices.Concat(requestHello[:], hint, request[:]), "hello": replyHello[:]})
		reply := p.hear("reply")
		channel, err := client.Finish(Hello(reply), reply[HelloLen:])
		if err != nil {
			t.Fatal(err)
		}
		p.converse(channel)
	}
}

// converse sends records and large messages, which come back reversed, before and after an update.
func (p *pythonPeer) converse(c *Channel) {
	p.t.Helper()
	for update := range 2 {
		for n := range minRecords {
			text := bytes.Repeat([]byte{byte(n), 'x'}, n%50)
			sealed, err := c.Seal.Seal(nil, text)
			if err != nil {
				p.t.Fatal(err)
			}
			p.say(map[string]any{"sealed": sealed})
			got, err := c.Open.Open(nil, p.hear("sealed"))
			if slices.Reverse(text); err != nil || !bytes.Equal(got, text) {
				p.t.Fatalf("record %d: %x, %v, want %x", n, got, err, text)
			}
		}
		p.large(c, 1+update*(2*SegmentLen+3))
		p.say(map[string]any{"update": true})
		if err := c.Seal.Update(); err != nil {
			p.t.Fatal(err)
		}
		if err := c.Open.Update(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pythonPeer) large(c *Channel, n int) {
	p.t.Helper()
	b, number := sealLarge(p.t, c.SealLarge, n)
	p.say(map[string]any{"sealed": b, "number": number, "length": n})
	back := p.hear("sealed")
	if err := openLarge(c.OpenLarge, back, n, number); err != nil {
		p.t.Fatal(err)
	}
	slices.Reverse(back[:n])
	for i, got := range back[:n] {
		if got != byte(i+i>>8+i>>16) {
			p.t.Fatalf("byte %d of %d is %x", i, n, got)
		}
	}
}
