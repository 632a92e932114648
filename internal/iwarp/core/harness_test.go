package core_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// t0 is the start of every test. Time moves only when a test moves it.
var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// side is one Conn with its owner, which records the reports.
type side struct {
	t    tb
	name string
	c    core.Conn
	now  time.Time

	requests []core.Request
	est      int
	private  []byte
	ird, ord uint16
	rejected error
	done     []completion
	closed   int
	err      error

	onRequest     func(core.Request)
	onEstablished func()
	onComplete    func(completion)

	finTold bool   // the other side has our FIN
	out     []byte // every byte the socket took
	iov     [][]byte
}

func newSide(t tb, name string, cfg core.Config) *side {
	t.Helper()
	s := &side{t: t, name: name, now: t0, iov: make([][]byte, 0, 64)}
	if cfg.SendWRs == 0 {
		cfg.SendWRs = 64
	}
	if cfg.RecvWRs == 0 {
		cfg.RecvWRs = 64
	}
	if err := s.c.Init(cfg, s); err != nil {
		t.Fatalf("%s: Init: %v", name, err)
	}
	return s
}

func (s *side) alive(what string) {
	if s.closed > 0 {
		s.t.Errorf("%s: %s after Closed", s.name, what)
	}
}

func (s *side) Request(r core.Request) {
	s.alive("Request")
	s.requests = append(s.requests, r)
	if s.onRequest != nil {
		s.onRequest(r)
	}
}

func (s *side) Established(private []byte, ird, ord uint16) {
	s.alive("Established")
	s.est++
	s.private, s.ird, s.ord = private, ird, ord
	if s.onEstablished != nil {
		s.onEstablished()
	}
}

func (s *side) Rejected(private []byte, err error) {
	s.alive("Rejected")
	s.private, s.rejected = private, err
}

// completion is what Complete was called with.
type completion struct {
	verbs.WC
	solicited bool
}

func (s *side) Complete(wc verbs.WC, solicited bool) {
	s.alive("Complete")
	e := completion{wc, solicited}
	s.done = append(s.done, e)
	if s.onComplete != nil {
		s.onComplete(e)
	}
}

func (s *side) Closed(err error) {
	s.alive("Closed")
	s.closed++
	s.err = err
}

// take writes until nothing is pending, at most limit bytes per write.
func (s *side) take(limit int) []byte {
	s.t.Helper()
	from := len(s.out)
	for turn := 0; s.c.Pending(); turn++ {
		if turn > 1<<20 {
			s.t.Fatalf("%s: Pending for ever", s.name)
		}
		if s.write(limit) == 0 {
			s.t.Fatalf("%s: Pending, but nothing to gather", s.name)
		}
	}
	return s.out[from:]
}

// write writes once, at most limit bytes.
func (s *side) write(limit int) int {
	s.iov = s.c.Gather(s.iov[:0])
	n := 0
	for _, p := range s.iov {
		k := min(len(p), limit-n)
		s.out = append(s.out, p[:k]...)
		n += k
	}
	s.c.Advance(s.now, n)
	return n
}

// input feeds b in pieces of the sizes that next gives.
func (s *side) input(b []byte, next func() int) {
	for len(b) > 0 {
		k := min(max(next(), 1), len(b))
		piece := bytes.Clone(b[:k])
		s.c.Input(s.now, piece)
		s.c.Keep()
		for i := range piece {
			piece[i] = 0xee // the staging buffer is used again
		}
		b = b[k:]
	}
}

func whole() int { return 1 << 30 }

// move carries bytes and FINs both ways until all is quiet.
func move(a, b *side, limit int, next func() int) {
	for quiet := 0; quiet < 2; {
		quiet++
		for _, d := range [2][2]*side{{a, b}, {b, a}} {
			from, to := d[0], d[1]
			if from.c.Pending() && from.write(limit) > 0 {
				quiet = 0
			}
			to.input(from.fresh(), next)
			fin, gone := from.c.WantClose()
			if (fin || gone) && !from.finTold && !from.c.Pending() {
				from.finTold, quiet = true, 0
				to.c.InputEnd(to.now, nil)
			}
		}
	}
}

// fresh returns the output since its last call.
func (s *side) fresh() []byte {
	b := s.out
	s.out = nil
	return b
}

func (s *side) at(d time.Duration) { s.now = t0.Add(d) }

// fire advances the time to the deadline, which must be d after the start.
func (s *side) fire(why string, d time.Duration) {
	s.t.Helper()
	at, ok := s.c.Deadline()
	if !ok || at.Sub(t0) != d {
		s.t.Fatalf("%s: %s: deadline %v, %v: want %v", s.name, why, at.Sub(t0), ok, d)
	}
	s.now = at
	s.c.Timeout(at)
}

func (s *side) quiet(why string) {
	s.t.Helper()
	if s.c.Pending() {
		s.t.Errorf("%s: %s: output pending: %x", s.name, why, bytes.Join(s.c.Gather(nil), nil))
	}
}

func region(n int) *verbs.MR {
	return &verbs.MR{Bytes: make([]byte, n), Access: verbs.LocalWrite}
}

func (s *side) postRecv(id uint64, n int) *verbs.MR {
	s.t.Helper()
	mr := region(n)
	if err := s.c.PostRecv(verbs.RecvWR{ID: id, SGE: verbs.SGE{MR: mr, Length: uint32(n)}}); err != nil {
		s.t.Fatalf("%s: PostRecv: %v", s.name, err)
	}
	return mr
}

func (s *side) postSend(id uint64, data string, flags verbs.SendFlags) {
	s.t.Helper()
	mr := region(len(data))
	copy(mr.Bytes, data)
	wr := verbs.SendWR{ID: id, Flags: flags | verbs.Signaled, SGL: []verbs.SGE{{MR: mr, Length: uint32(len(data))}}}
	if err := s.c.PostSend(&wr); err != nil {
		s.t.Fatalf("%s: PostSend: %v", s.name, err)
	}
}

// statuses returns the completions in order: "r1:success s2:work request flushed".
func (s *side) statuses() string {
	var b bytes.Buffer
	for _, wc := range s.done {
		q := "s"
		if wc.Op == verbs.Recv {
			q = "r"
		}
		fmt.Fprintf(&b, "%s%d:%s/%d ", q, wc.ID, wc.Status, wc.Bytes)
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

func (s *side) wantDone(why, want string) {
	s.t.Helper()
	if got := s.statuses(); got != want {
		s.t.Errorf("%s: %s: completions %q, want %q", s.name, why, got, want)
	}
	s.done = nil
}

// connect makes an established pair.
func connect(t tb, ca, cb core.Config) (a, b *side) {
	t.Helper()
	ca.Initiator, cb.Initiator = true, false
	a, b = newSide(t, "initiator", ca), newSide(t, "responder", cb)
	b.onRequest = func(core.Request) {
		if err := b.c.Accept(b.now, []byte("welcome"), 4, 4); err != nil {
			t.Fatalf("Accept: %v", err)
		}
	}
	a.c.BeginSetup(a.now)
	b.c.BeginSetup(b.now)
	move(a, b, 1<<30, whole)
	if a.est != 1 || string(a.private) != "welcome" {
		t.Fatalf("not connected: %d, %q, %v", a.est, a.private, a.rejected)
	}
	return a, b
}

// frame and fpdu make input by hand.
func frame(f wire.Frame) []byte { return wire.AppendFrame(nil, &f) }

func fpdu(h wire.Header, payload ...byte) []byte {
	return wire.AppendFPDU(nil, &wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &h), payload...)})
}

func fpduCRC(h wire.Header, payload ...byte) []byte {
	f := wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &h), payload...)}
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}

func send(msn uint32, data string) []byte {
	return fpdu(wire.Header{Last: true, Opcode: wire.OpSend, MSN: msn}, []byte(data)...)
}

func wantErrno(t *testing.T, why string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v: want %v", why, err, want)
	}
}
