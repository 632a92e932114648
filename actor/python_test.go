//go:build python

package actor

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"testing"
)

// pythonPeer is testdata/peer, which is written from docs/wire.md, docs/security-wire.md and the
// RFCs, and knows nothing of this module. It needs Debian's python3-cryptography.
type pythonPeer struct {
	tb   testing.TB
	in   *json.Encoder
	out  *bufio.Reader
	last string // its last answer
}

// does is a command of the peer.
type does map[string]any

// answered is its answer. Bytes are hexadecimal.
type answered struct {
	Error          string
	Request, Reply string
	First, Sealed  string
	Private, Data  string
	Rejected, Same bool
	Type, Port     int
	Size, Updates  int
	Sends          int
	Ended          string
}

func startPython(tb testing.TB) *pythonPeer {
	tb.Helper()
	cmd := exec.Command("python3", "testdata/peer/peer.py") // it ends when its input does
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("the peer: %v", err)
		}
	})
	return &pythonPeer{tb: tb, in: json.NewEncoder(in), out: bufio.NewReader(out)}
}

// begin sends the peer a command, whose result answer returns.
func (p *pythonPeer) begin(do string, conn string, more ...does) {
	p.tb.Helper()
	c := does{"do": do, "conn": conn}
	for _, m := range more {
		for name, value := range m {
			if b, ok := value.([]byte); ok {
				value = hex.EncodeToString(b)
			}
			c[name] = value
		}
	}
	if err := p.in.Encode(c); err != nil {
		p.tb.Fatal(err)
	}
}

func (p *pythonPeer) answer() (a answered) {
	p.tb.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.tb.Fatal(err)
	}
	p.last = string(line)
	if err := json.Unmarshal(line, &a); err != nil {
		p.tb.Fatalf("%v: %s", err, line)
	}
	return a
}

// tries makes the peer execute a command that may fail.
func (p *pythonPeer) tries(do string, conn string, more ...does) answered {
	p.tb.Helper()
	p.begin(do, conn, more...)
	return p.answer()
}

// do makes the peer execute a command that must not fail.
func (p *pythonPeer) do(do string, conn string, more ...does) answered {
	p.tb.Helper()
	a := p.tries(do, conn, more...)
	if a.Error != "" {
		p.tb.Fatalf("%s of %s: %s", do, conn, a.Error)
	}
	return a
}

// named returns the peer's identity and key for its commands.
func named(who Credential) does { return does{"identity": who.Identity, "key": who.Key[:]} }

// dialing returns the address that it dials.
func dialing(at string) does {
	a := netip.MustParseAddrPort(at)
	return does{"host": a.Addr().String(), "port": a.Port()}
}
