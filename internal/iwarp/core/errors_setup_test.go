package core_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
)

// rawFrame makes an MPA frame by hand: flags, revision, and a length that need not be that of what
// follows.
func rawFrame(key string, flags, rev byte, length int, rest ...byte) []byte {
	b := append([]byte("MPA ID "+key+" Frame"), flags, rev)
	return append(binary.BigEndian.AppendUint16(b, uint16(length)), rest...)
}

const (
	req, rep = "Req", "Rep"
	mpaFrame = "RFC 5044 section 7.1.1 "
	mpaRules = "RFC 5044 section 7.1.2 "
	enhanced = "RFC 6581 section 6 "
)

// word makes a control word by hand.
func word(ird, ord uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, ird), ord)
}

// TestRequestErrors checks, for every kind of Request, the report to the responder's owner, the
// responder's answer, and how an initiator interprets it.
func TestRequestErrors(t *testing.T) {
	many := make([]byte, 513)
	glued := func(b []byte) []byte { return append(b, send(1, "too early")...) }
	tests := []struct {
		name  string
		input []byte
		errno unix.Errno // 0: the owner gets the Request
		// the rejecting Reply's flags, revision and private data; empty: nothing but a FIN
		reject string
		want   core.Request
	}{
		{name: mpaFrame + "another protocol", input: []byte("GET / HTTP/1.1\r\n\r\n"), errno: unix.EPROTO},
		{name: mpaFrame + "key of a Reply", input: rawFrame(rep, 0, 1, 0), errno: unix.EPROTO},
		{name: mpaFrame + "last byte of the key", input: append([]byte("MPA ID Req Framf"), 0, 1, 0, 0), errno: unix.EPROTO},
		{name: mpaFrame + "revision 3", input: rawFrame(req, 0, 3, 0), errno: unix.EPROTO},
		{name: mpaFrame + "revision 3 with a control word", input: rawFrame(req, 0x10, 3, 4, word(1, 1)...), errno: unix.EPROTO},
		{name: mpaFrame + "revision 255", input: rawFrame(req, 0xff, 255, 0xffff), errno: unix.EPROTO},
		{name: mpaFrame + "513 bytes of private data", input: rawFrame(req, 0, 1, 513, many...), errno: unix.EPROTO},
		{
			name: mpaFrame + "513 bytes with a control word", input: rawFrame(req, 0x10, 2, 513, many...), errno: unix.EPROTO,
			reject: "3002000400000000",
		},
		{name: mpaFrame + "65535 bytes of private data", input: rawFrame(req, 0, 1, 65535), errno: unix.EPROTO},
		{name: mpaRules + "FPDU glued to it", input: glued(rawFrame(req, 0, 1, 0)), errno: unix.EPROTO},
		{name: mpaRules + "FPDU glued to revision 2", input: glued(rawFrame(req, 0x10, 2, 4, word(1, 1)...)), errno: unix.EPROTO},
		{name: mpaRules + "a second Request", input: append(rawFrame(req, 0, 1, 0), rawFrame(req, 0, 1, 0)...), errno: unix.EPROTO},
		{name: mpaFrame + "markers", input: rawFrame(req, 0x80, 1, 0), errno: unix.ECONNREFUSED, reject: "20010000"},
		{name: mpaFrame + "markers, revision 0", input: rawFrame(req, 0x80, 0, 0), errno: unix.ECONNREFUSED, reject: "20000000"},
		{
			name: mpaFrame + "markers and CRC, revision 2", input: rawFrame(req, 0xd0, 2, 4, word(3, 5)...), errno: unix.ECONNREFUSED,
			reject: "3002000400030005",
		},
		{name: enhanced + "control word of 0 bytes", input: rawFrame(req, 0x10, 2, 0), errno: unix.EPROTO, reject: "3002000400000000"},
		{name: enhanced + "control word of 1 byte", input: rawFrame(req, 0x10, 2, 1, 1), errno: unix.EPROTO, reject: "3002000400000000"},
		{name: enhanced + "control word of 3 bytes", input: rawFrame(req, 0x10, 2, 3, 1, 2, 3), errno: unix.EPROTO, reject: "3002000400000000"},

		{name: mpaFrame + "revision 0", input: rawFrame(req, 0, 0, 2, 'p', 'd'), want: core.Request{PrivateData: []byte("pd")}},
		{name: mpaFrame + "revision 1", input: rawFrame(req, 0x40, 1, 0), want: core.Request{Revision: 1, CRC: true}},
		{
			name: mpaFrame + "reserved flags and R, which mean nothing in a Request", input: rawFrame(req, 0x2f, 1, 0),
			want: core.Request{Revision: 1},
		},
		{
			name: enhanced + "S in revision 1 means nothing", input: rawFrame(req, 0x10, 1, 2, 'p', 'd'),
			want: core.Request{Revision: 1, PrivateData: []byte("pd")},
		},
		{
			name: enhanced + "revision 2 without a control word", input: rawFrame(req, 0, 2, 1, 'x'),
			want: core.Request{Revision: 2, PrivateData: []byte("x")},
		},
		{
			name: enhanced + "control word", input: rawFrame(req, 0x10, 2, 6, append(word(0x8003, 0xc005), 'p', 'd')...),
			want: core.Request{Revision: 2, Enhanced: true, PeerToPeer: true, IRD: 3, ORD: 5, PrivateData: []byte("pd")},
		},
		{name: mpaFrame + "512 bytes", input: rawFrame(req, 0, 1, 512, many[:512]...), want: core.Request{Revision: 1, PrivateData: many[:512]}},
		{
			name: enhanced + "512 bytes with the control word", input: rawFrame(req, 0x10, 2, 512, many[:512]...),
			want: core.Request{Revision: 2, Enhanced: true, PrivateData: many[:508]},
		},
	}
	for _, tt := range tests {
		for i, step := range []func() int{whole, func() int { return 1 }} {
			s := newSide(t, tt.name, core.Config{})
			s.postRecv(1, 10)
			s.c.BeginSetup(t0)
			s.input(tt.input, step)
			if tt.errno == 0 {
				if len(s.requests) != 1 || s.closed != 0 {
					t.Errorf("%s: %d Requests, %v", tt.name, len(s.requests), s.err)
					continue
				}
				if diff := cmp.Diff(tt.want, s.requests[0], cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: the owner got (-want +got):\n%s", tt.name, diff)
				}
				s.quiet("the owner has not answered")
				continue
			}
			wantErrno(t, tt.name, s.err, tt.errno)
			// in pieces, the Request is right, then wrong
			delivered, early := len(s.requests), i == 1 && strings.HasPrefix(tt.name, mpaRules)
			if delivered > 0 && !early || s.closed != 1 {
				t.Errorf("%s: the owner got %d Requests, closed %d", tt.name, delivered, s.closed)
			}
			s.wantDone(tt.name, "r1:work request flushed/0")
			s.wantAnswer(tt.reject)
		}
	}
}

// wantAnswer checks a responder's last output. It is a rejecting Reply, given in hex without its
// key, or only a FIN. An initiator that gets it must report ECONNRESET: either rejected, or no
// Reply, which is a reason to try revision 1.
func (s *side) wantAnswer(reject string) {
	s.t.Helper()
	out := s.take(1 << 30)
	a := newSide(s.t, s.name+": initiator", core.Config{Initiator: true})
	a.postRecv(1, 1)
	a.c.BeginSetup(t0)
	a.take(1 << 30)
	if reject == "" {
		if len(out) > 0 {
			s.t.Errorf("%s: answered with %x", s.name, out)
		}
		s.wantClose("nothing to say", false, true)
		a.c.InputEnd(t0, nil)
	} else {
		if want := "4d504120494420526570204672616d65" + reject; hex.EncodeToString(out) != want {
			s.t.Errorf("%s: Reply %x, want %s", s.name, out, want)
		}
		s.wantClose("behind the Reply", true, false)
		s.fire("the initiator has its time to read the Reply", time.Second)
		a.c.Input(t0, out)
	}
	var e *core.Error
	if !errors.As(a.rejected, &e) || e.Errno != unix.ECONNRESET || e.Rejected != (reject != "") || e.Protocol {
		s.t.Errorf("%s: %+v", a.name, a.rejected)
	}
	if errors.Is(a.rejected, core.ErrNoReply) != (reject == "") || len(a.private) > 0 || a.closed != 1 || a.est != 0 {
		s.t.Errorf("%s: %v, private data %q, closed %d", a.name, a.rejected, a.private, a.closed)
	}
	a.wantDone("rejected", "r1:work request flushed/0")
	a.quiet("rejected")
}
