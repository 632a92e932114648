package iwarp

import (
	"bytes"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/capture"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/sockets"
)

// twoStreams are the bytes that a socket has written and read.
type twoStreams struct{ out, in []byte }

// recorder records the bytes that the sockets of a device read and write, below the device.
type recorder struct {
	mu    sync.Mutex
	open  map[int]*twoStreams
	ended []*twoStreams // only those with any bytes
}

// recordingStack is the Stack of one loop.
type recordingStack struct {
	sockets.Linux
	r *recorder
}

func (r *recorder) stack() sockets.Stack { return &recordingStack{r: r} }

// note appends the first n bytes of bufs to a direction of fd.
func (r *recorder) note(fd, n int, bufs [][]byte, out bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n <= 0 {
		return
	}
	s := r.open[fd]
	if s == nil {
		s = new(twoStreams)
		r.open[fd] = s
	}
	to := &s.in
	if out {
		to = &s.out
	}
	for _, b := range bufs {
		b = b[:min(len(b), n)]
		*to = append(*to, b...)
		n -= len(b)
	}
}

func (s *recordingStack) Send(fd int, bufs [][]byte, flags int) (int, error) {
	n, err := s.Linux.Send(fd, bufs, flags)
	s.r.note(fd, n, bufs, true)
	return n, err
}

func (s *recordingStack) Recv(fd int, b []byte) (int, error) {
	n, err := s.Linux.Recv(fd, b)
	s.r.note(fd, n, [][]byte{b}, false)
	return n, err
}

func (s *recordingStack) Readv(fd int, bufs [][]byte) (int, error) {
	n, err := s.Linux.Readv(fd, bufs)
	s.r.note(fd, n, bufs, false)
	return n, err
}

func (s *recordingStack) Close(fd int) error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if t := s.r.open[fd]; t != nil {
		s.r.ended = append(s.r.ended, t)
		delete(s.r.open, fd)
	}
	return s.Linux.Close(fd)
}

// captured is a capture of a device whose sockets are recorded.
type captured struct {
	t testing.TB
	*Capture
	drv  *Driver
	rec  *recorder
	file bytes.Buffer
	read capture.File
}

// capturing makes a device with a capture.
func capturing(t testing.TB, cfg Config, c CaptureConfig) *captured {
	t.Helper()
	x := recording(t, cfg)
	x.start(c)
	return x
}

// recording makes a device whose capture has not begun.
func recording(t testing.TB, cfg Config) *captured {
	x := &captured{t: t, rec: &recorder{open: make(map[int]*twoStreams)}}
	x.drv = cfg.NewOn(x.rec.stack)
	return x
}

func (x *captured) start(c CaptureConfig) {
	x.t.Helper()
	if c.Writer == nil {
		c.Writer = &x.file
	}
	var err error
	if x.Capture, err = x.drv.StartCapture(c); err != nil {
		x.t.Fatal(err)
	}
}

// stop ends the capture and reads it.
func (x *captured) stop() {
	x.t.Helper()
	if err := x.Stop(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	x.parse()
}

// parse reads the file, and compares its statistics with the capture's.
func (x *captured) parse() {
	x.t.Helper()
	var err error
	if x.read, err = capture.ReadPcapng(x.file.Bytes()); err != nil {
		x.t.Fatalf("the file, of %d bytes: %v", x.file.Len(), err)
	}
	s, got := x.Stats(), x.read.Statistics
	if s.Bytes != int64(x.file.Len()) || int(s.Packets) != len(x.read.Packets) || got[8] != s.Packets || got[5] != s.Dropped ||
		got[4] != s.Packets+s.Dropped {
		x.t.Errorf("stats %+v; the file has %d bytes, %d packets and says %v", s, x.file.Len(), len(x.read.Packets), got)
	}
}

// streams puts the connections of the file together, in the order in which they began, and checks
// that the headers fit together: numbers without a hole or an overlap, acknowledgements of nothing
// that has not come.
func (x *captured) streams() (all []*twoStreams) {
	x.t.Helper()
	type direction struct {
		bytes *[]byte
		next  uint32
		over  bool
	}
	type key struct{ local, peer netip.AddrPort }
	conns := make(map[key]*[2]direction)
	for i, p := range x.read.Packets {
		k := key{p.From, p.To}
		from, to := 0, 1
		if p.Inbound {
			k, from, to = key{p.To, p.From}, 1, 0
		}
		const fin, syn, rst, ack = 1, 2, 4, 16
		if p.Flags == syn {
			s := new(twoStreams)
			all = append(all, s)
			conns[k] = &[2]direction{{bytes: &s.out}, {bytes: &s.in}}
			conns[k][from].next = p.Seq
		}
		c := conns[k]
		if c == nil {
			x.t.Fatalf("packet %d is of a connection that has not begun", i)
		}
		f, o := &c[from], &c[to]
		if p.Flags == syn|ack {
			f.next = p.Seq
		}
		if p.Seq != f.next || f.over && len(p.Payload) > 0 || p.Flags&ack != 0 && p.Ack != o.next {
			x.t.Fatalf("packet %d: flags %#x, number %d and acknowledgement %d, want %d and %d", i, p.Flags, p.Seq, p.Ack, f.next, o.next)
		}
		*f.bytes = append(*f.bytes, p.Payload...)
		f.next += uint32(len(p.Payload))
		if p.Flags&(syn|fin) != 0 {
			f.next++
		}
		f.over = f.over || p.Flags&(fin|rst) != 0
	}
	return all
}

// unended returns how many connections of the file have neither a FIN of this side nor a reset.
func (x *captured) unended() (n int) {
	for _, p := range x.read.Packets {
		const fin, syn, rst = 1, 2, 4
		switch {
		case p.Flags == syn:
			n++
		case p.Flags&rst != 0, p.Flags&fin != 0 && !p.Inbound:
			n--
		}
	}
	return n
}

// fpdus counts the whole FPDUs of a stream that begins with an MPA frame.
func fpdus(b []byte) (n int) {
	_, k, err := wire.ConsumeFrame(b)
	for ; err == nil; n++ {
		b = b[k:]
		_, k, err = wire.ConsumeFPDU(b)
	}
	return max(n-1, 0)
}

// judge compares the file with the bytes that the sockets have read and written, and returns the
// number of FPDUs.
func (x *captured) judge() (count int) {
	x.t.Helper()
	got := slices.DeleteFunc(x.streams(), func(s *twoStreams) bool { return len(s.in)+len(s.out) == 0 })
	x.rec.mu.Lock()
	defer x.rec.mu.Unlock()
	if len(got) != len(x.rec.ended) {
		x.t.Fatalf("%d connections in the file, %d on the sockets", len(got), len(x.rec.ended))
	}
	if n := x.unended(); n > 0 {
		x.t.Errorf("%d connections have no end in the file", n)
	}
	for _, want := range x.rec.ended {
		count += fpdus(want.out) + fpdus(want.in)
		found := false
		for i, s := range got {
			if found = bytes.Equal(s.out, want.out) && bytes.Equal(s.in, want.in); found {
				got = append(got[:i:i], got[i+1:]...)
				break
			}
		}
		if !found {
			x.t.Errorf("no connection of the file has written %d bytes and read %d, as one has", len(want.out), len(want.in))
		}
	}
	return count
}
