package core_test

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/capture"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

func load(t testing.TB, name string) capture.Conn {
	t.Helper()
	c, err := capture.Load("../testdata/" + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func names(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../testdata/*.pcap")
	if err != nil || len(files) < 30 {
		t.Fatalf("captures: %d, %v", len(files), err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(filepath.Base(files[i]), ".pcap")
	}
	return files
}

// captured is one side's stream, taken apart.
type captured struct {
	frame wire.Frame
	raw   []byte // the frame
	fpdus [][]byte
	heads []wire.Header
}

func takeApart(t testing.TB, b []byte) captured {
	t.Helper()
	f, n, err := wire.ConsumeFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	c := captured{frame: f, raw: b[:n]}
	for b = b[n:]; len(b) > 0; b = b[n:] {
		var p wire.FPDU
		if p, n, err = wire.ConsumeFPDU(b); err != nil {
			t.Fatal(err)
		}
		h, _, err := wire.ConsumeHeader(p.ULPDU)
		if err != nil {
			t.Fatal(err)
		}
		c.fpdus, c.heads = append(c.fpdus, b[:n]), append(c.heads, h)
	}
	return c
}

func payloadOf(fpdu []byte) []byte {
	p, _, _ := wire.ConsumeFPDU(fpdu)
	return p.ULPDU[wire.UntaggedLen:]
}

// message is a Send as captured: its FPDUs, its bytes.
type message struct {
	wire, data []byte
	op         wire.Opcode
	segment    int // payload of the first FPDU
}

func (c *captured) sends() []message {
	var all []message
	for i, h := range c.heads {
		if !h.Opcode.Send() {
			continue
		}
		if h.MO == 0 {
			all = append(all, message{op: h.Opcode, segment: len(payloadOf(c.fpdus[i]))})
		}
		m := &all[len(all)-1]
		m.wire, m.data = append(m.wire, c.fpdus[i]...), append(m.data, payloadOf(c.fpdus[i])...)
	}
	return all
}

// malformedRequest: siw's own mistake, see testdata/README.md.
var malformedRequest = map[string]bool{"pdl_252": true, "pdl_253": true, "pdl_255": true}

// TestAsSiwInitiator is siw's initiator against the captured responder: same posts, same bytes.
func TestAsSiwInitiator(t *testing.T) {
	// what siw requests and we never request
	otherRequest := map[string]bool{"try_gso": true, "p2p_none": true, "p2p_read": true, "p2p_write": true, "pdl_251": true, "pdl_rev1_255": true}
	messages := 0
	for _, name := range names(t) {
		if malformedRequest[name] || strings.HasPrefix(name, "reject") {
			continue
		}
		c := load(t, name)
		ini, res := takeApart(t, c.Initiator), takeApart(t, c.Responder)
		f := ini.frame
		cfg := core.Config{
			Initiator: true, Revision: f.Revision, PeerToPeer: f.Control.PeerToPeer, CRC: f.Flags&wire.FlagCRC != 0,
			IRD: f.Control.IRD, ORD: f.Control.ORD, PrivateData: f.Private[:min(len(f.Private), core.MaxPrivateData)],
		}
		s := newSide(t, name, cfg)
		s.c.BeginSetup(t0)
		if got := s.take(1 << 30); !otherRequest[name] && !bytes.Equal(got, ini.raw) {
			t.Errorf("%s: Request %x, siw's is %x", name, got, ini.raw)
		}
		s.input(res.raw, func() int { return 3 })
		if s.est != 1 || !bytes.Equal(s.private, res.frame.Private) {
			t.Errorf("%s: established %d with %x", name, s.est, s.private)
			continue
		}
		if f.Control.PeerToPeer && name != "p2p_none" {
			if got := s.take(1 << 30); !bytes.Equal(got, ini.fpdus[0]) {
				t.Errorf("%s: ready-to-receive %x, siw's is %x", name, got, ini.fpdus[0])
			}
		} else if name == "p2p_none" {
			s.take(1 << 30) // we offered a Write, the responder chose it, so one goes out
		}
		if len(res.heads) > 0 && res.heads[0].Opcode == wire.OpReadResponse && name == "p2p_read" {
			s.c.Input(t0, res.fpdus[0])
		}
		for i, m := range ini.sends() {
			messages++
			flags := verbs.SendFlags(0)
			if m.op == wire.OpSendSE {
				flags = verbs.Solicited
			}
			s.c.SetMaxSegment(m.segment)
			s.postSend(uint64(i), string(m.data), flags)
			if got := s.take(1 << 30); !bytes.Equal(got, m.wire) {
				t.Errorf("%s: message %d: %x, siw's is %x", name, i, got, m.wire)
			}
		}
		if s.closed != 0 {
			t.Errorf("%s: closed: %v", name, s.err)
		}
	}
	if messages < 20 {
		t.Errorf("%d messages: the captures are not what they were", messages)
	}
}

// TestAsSiwResponder is siw's responder against the captured initiator: same Reply, same messages
// received. The stream is followed up to the first Write or Read, which need memory.
func TestAsSiwResponder(t *testing.T) {
	messages := 0
	for _, name := range names(t) {
		if malformedRequest[name] {
			continue
		}
		c := load(t, name)
		ini, res := takeApart(t, c.Initiator), takeApart(t, c.Responder)
		s := newSide(t, name, core.Config{})
		sends := ini.sends()
		var mrs []*verbs.MR
		for i, m := range sends {
			mrs = append(mrs, s.postRecv(uint64(i), len(m.data)))
		}
		s.c.BeginSetup(t0)
		s.input(ini.raw, func() int { return 7 })
		if len(s.requests) != 1 {
			t.Fatalf("%s: %d Requests", name, len(s.requests))
		}
		r, f := s.requests[0], ini.frame
		if !bytes.Equal(r.PrivateData, f.Private) || r.IRD != f.Control.IRD || r.ORD != f.Control.ORD || r.Revision != f.Revision {
			t.Errorf("%s: Request %+v, was %+v", name, r, f)
		}
		var err error
		if strings.HasPrefix(name, "reject") {
			err = s.c.Reject(t0, res.frame.Private)
		} else {
			err = s.c.Accept(t0, res.frame.Private, res.frame.Control.IRD, res.frame.Control.ORD)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := s.take(1 << 30); name != "try_gso" && !bytes.Equal(got, res.raw) {
			t.Errorf("%s: Reply %x, siw's is %x", name, got, res.raw)
		}
		got := 0
		for i, p := range ini.fpdus {
			if op := ini.heads[i].Opcode; !op.Send() && (i > 0 || !f.Control.PeerToPeer) {
				break
			}
			s.input(p, func() int { return 1000 })
			if ini.heads[i].Opcode.Send() && ini.heads[i].Last {
				got++
			}
		}
		messages += got
		if len(s.done) != got || s.closed != 0 && !strings.HasPrefix(name, "reject") {
			t.Errorf("%s: %d of %d messages, closed %d: %v", name, len(s.done), got, s.closed, s.err)
			continue
		}
		for i, wc := range s.done {
			m := sends[i]
			if wc.Status != verbs.StatusSuccess || int(wc.Bytes) != len(m.data) || !bytes.Equal(mrs[i].Bytes, m.data) || wc.solicited != (m.op == wire.OpSendSE) {
				t.Errorf("%s: message %d: %+v", name, i, wc)
			}
		}
		if name == "p2p_read" {
			if got := s.take(1 << 30); !bytes.Equal(got, res.fpdus[0]) {
				t.Errorf("p2p_read: answer %x, siw's is %x", got, res.fpdus[0])
			}
		}
	}
	if messages != 18 {
		t.Errorf("%d messages: the captures are not what they were", messages)
	}
}

// TestSiwMalformedRequest: a rev 2 Request whose length leaves no room for the control word is
// rejected in a well-formed Reply.
func TestSiwMalformedRequest(t *testing.T) {
	for name := range malformedRequest {
		s := newSide(t, name, core.Config{})
		s.c.BeginSetup(t0)
		s.c.Input(t0, load(t, name).Initiator)
		reply, n, err := wire.ConsumeFrame(s.take(1 << 30))
		if err != nil || n != wire.FrameLen+wire.ControlLen || reply.Flags != wire.FlagReject|wire.FlagEnhanced {
			t.Errorf("%s: Reply %+v, %d, %v", name, reply, n, err)
		}
		wantErrno(t, name, s.err, unix.EPROTO)
		if len(s.requests) != 0 || s.closed != 1 {
			t.Errorf("%s: %d Requests, closed %d", name, len(s.requests), s.closed)
		}
	}
}

// TestSiwRejects is an initiator that siw rejects.
func TestSiwRejects(t *testing.T) {
	for name, private := range map[string]string{"reject_pd": "no-thanks", "reject_nopd": "", "reject_rev1": "no-thanks"} {
		c := load(t, name)
		s := newSide(t, name, core.Config{Initiator: true, Revision: c.Initiator[17], IRD: 4, ORD: 4, PrivateData: []byte("please")})
		s.c.BeginSetup(t0)
		if got := s.take(1 << 30); !bytes.Equal(got, c.Initiator) {
			t.Errorf("%s: Request %x, siw's is %x", name, got, c.Initiator)
		}
		s.c.Input(t0, c.Responder)
		wantErrno(t, name, s.rejected, unix.ECONNRESET)
		if string(s.private) != private || s.closed != 1 || s.est != 0 {
			t.Errorf("%s: private %q, closed %d, established %d", name, s.private, s.closed, s.est)
		}
	}
}

// TestSiwTerminates: siw's initiators get our Terminate in the form of RFC 5040, while siw's own
// has reversed bits. Each row states the other differences. Our initiator understands siw's
// Terminate.
func TestSiwTerminates(t *testing.T) {
	tests := []struct {
		name string
		recv []int
		want string // ours: Terminate payload
		done string
		text string // siw's Terminate as our initiator reports it
	}{
		// siw: 21020300 0006, and a copy without the fields that it had cleared
		{
			"term_send_norecv",
			[]int{5},
			"1202c000" + "0018" + "4143" + "00000000" + "00000000" + "00000002" + "00000000",
			"r0:success/5", "DDP 2/02 no receive posted",
		},
		// siw: code 02 for a message that is too long, RFC 5041 section 7.2 has 05
		{
			"term_send_toolong",
			[]int{10},
			"1205c000" + "0076" + "4143" + "00000000" + "00000000" + "00000001" + "00000000",
			"r0:local length error/0", "DDP 2/02 no receive posted",
		},
		// siw: 11000300 0028; our length is the segment's, not its payload's
		{"term_write_badkey", nil, "1100c000" + "0036" + "c140" + "bc091a01" + "000056450c81b000", "", "DDP 1/00 invalid STag"},
		// siw: 10000700 0000, with the read size in the MSN of its copy
		{
			"term_read_badstag", nil, "0100e000" + "002e" + "4141" + "00000000" + "00000001" + "00000001" + "00000000" +
				"43887a00000055ada9c80000" + "00000028" + "80458700000055ee09b18000", "", "RDMAP 1/00 invalid STag",
		},
	}
	for _, tt := range tests {
		c := load(t, tt.name)
		ini, res := takeApart(t, c.Initiator), takeApart(t, c.Responder)
		s := newSide(t, tt.name, core.Config{})
		for i, n := range tt.recv {
			s.postRecv(uint64(i), n)
		}
		s.c.BeginSetup(t0)
		s.c.Input(t0, ini.raw)
		if err := s.c.Accept(t0, nil, 4, 4); err != nil {
			t.Fatal(err)
		}
		s.take(1 << 30)
		s.c.Input(t0, bytes.Join(ini.fpdus, nil))
		wantTerminate(t, s, tt.name, s.take(1<<30), tt.want)
		s.wantDone(tt.name, tt.done)

		i := newSide(t, tt.name, core.Config{Initiator: true, IRD: 4, ORD: 4})
		i.c.BeginSetup(t0)
		i.take(1 << 30)
		i.postRecv(9, 9)
		i.c.Input(t0, c.Responder)
		i.wantDone(tt.name, "r9:work request flushed/0")
		if i.closed != 1 || !strings.Contains(i.err.Error(), "Terminate received: "+tt.text) || len(res.fpdus) == 0 {
			t.Errorf("%s: initiator: %v", tt.name, i.err)
		}
		if _, now := i.c.WantClose(); !now {
			t.Errorf("%s: a received Terminate is answered with a FIN", tt.name)
		}
	}
}

// wantTerminate checks that out is the FPDU of a Terminate with this payload, and that a FIN and a
// short wait come next.
func wantTerminate(t *testing.T, s *side, why string, out []byte, want string) {
	t.Helper()
	p, n, err := wire.ConsumeFPDU(out)
	if err != nil || n != len(out) {
		t.Errorf("%s: %x: %v: want one Terminate", why, out, err)
		return
	}
	head, _, err := wire.ConsumeHeader(p.ULPDU)
	if err != nil || head != (wire.Header{Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1}) {
		t.Errorf("%s: header %+v, %v", why, head, err)
	}
	if got := hex.EncodeToString(p.ULPDU[wire.UntaggedLen:]); got != want {
		t.Errorf("%s: Terminate %s, want %s", why, got, want)
	}
	if fin, now := s.c.WantClose(); !fin || now {
		t.Errorf("%s: behind the Terminate: FIN %v, close %v", why, fin, now)
	}
	at, ok := s.c.Deadline()
	if !ok || at.Sub(s.now) != time.Second {
		t.Errorf("%s: closes after %v, want 1s", why, at.Sub(s.now))
	}
	s.c.Timeout(at)
	if _, now := s.c.WantClose(); !now {
		t.Errorf("%s: still open after the wait", why)
	}
	if s.closed != 1 {
		t.Errorf("%s: closed %d times", why, s.closed)
	}
}
