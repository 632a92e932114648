package conformance

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// stream is bytes on a connection.
var stream = []fact{
	{"bytes come in order", func(w *world) {
		c, s := w.pair()
		c.write([]byte("first"))
		s.ready("something has come", both)
		c.write([]byte("second"))
		s.read([]byte("firstsec"))
		s.ready("something is left", both)
		s.read([]byte("ond"))
		s.ready("nothing is left", writable)
		s.recv("nothing is left", unix.EAGAIN)
	}},
	{"slices go and come in order", func(w *world) {
		c, s := w.pair()
		all := pattern(5000)
		c.gather(all)
		s.scatter(all)
		s.ready("nothing is left", writable)
	}},
	{"nothing at all", func(w *world) {
		c, s := w.pair()
		if n, err := c.p.Send(c.fd, nil, 0); n != 0 || err != nil {
			w.Errorf("send of no slices: %d, %v", n, err)
		}
		s.stays("nothing was sent", writable)
	}},
	{"no room", func(w *world) {
		c, s := w.pair()
		sent := c.fill()
		c.ready("it is full", nothing)
		s.ready("it has much to read", both)
		if n, err := c.p.Unacknowledged(c.fd); err != nil || n <= 0 || n > len(sent) {
			w.Errorf("of %d bytes %d are not acknowledged, %v", len(sent), n, err)
		}
		s.read(sent)
		c.ready("there is room again", writable)
		w.until("everything is acknowledged", func() bool {
			n, err := c.p.Unacknowledged(c.fd)
			return err == nil && n == 0
		})
		c.write([]byte("more"))
		s.read([]byte("more"))
	}},
	{"no room, and both ways are independent", func(w *world) {
		c, s := w.pair()
		sent := c.fill()
		s.write([]byte("back"))
		c.ready("it is full, and something has come", eventloop.Readable)
		c.read([]byte("back"))
		c.ready("it is full", nothing)
		s.read(sent)
	}},
	{"bytes that were sent before a close all come", func(w *world) {
		c, s := w.pair()
		sent := c.fill()
		c.close()
		s.read(sent)
		s.ready("the end of the stream", both)
		s.recv("the end of the stream", nil)
	}},
	{"bytes that were sent before a shutdown all come", func(w *world) {
		c, s := w.pair()
		sent := c.fill()
		c.shutdown(unix.SHUT_WR)
		s.read(sent)
		s.ready("the end of the stream", both)
		s.recv("the end of the stream", nil)
		w.until("the FIN is acknowledged", func() bool {
			n, err := c.p.Unacknowledged(c.fd)
			return err == nil && n == 0
		})
		c.ready("it may read", writable)
	}},
}

// gather writes b in slices of several lengths, of which one is empty.
func (e *end) gather(b []byte) {
	e.w.Helper()
	e.w.until("all is written", func() bool {
		a, z := len(b)/3, len(b)/2
		n, err := e.p.Send(e.fd, [][]byte{b[:a], {}, b[a:z], b[z:]}, 0)
		if err != nil && err != unix.EAGAIN {
			e.w.Fatal(err)
		}
		b = b[max(n, 0):]
		return len(b) == 0
	})
}

// scatter reads want into slices of several lengths, of which one is empty.
func (e *end) scatter(want []byte) {
	e.w.Helper()
	got := make([]byte, len(want))
	left := got
	e.w.until("all has come", func() bool {
		a, z := len(left)/3, len(left)/2
		n, err := e.p.Readv(e.fd, [][]byte{left[:a], {}, left[a:z], left[z:]})
		if err != nil && err != unix.EAGAIN {
			e.w.Fatal(err)
		}
		left = left[max(n, 0):]
		return len(left) == 0
	})
	if !bytes.Equal(got, want) {
		e.w.Fatal("what was read is not what was sent")
	}
}

// ends is how connections end in an orderly way.
var ends = []fact{
	{"the end of the stream", func(w *world) {
		c, s := w.pair()
		c.write([]byte("last"))
		c.shutdown(unix.SHUT_WR)
		c.send("it has shut its side", unix.EPIPE)
		s.ready("bytes, then the end", both)
		s.read([]byte("last"))
		s.stays("the end", both)
		s.recv("the end", nil)
		s.recv("the end, again", nil)
		s.stays("the end can be read for ever", both)
	}},
	{"one side is shut", func(w *world) {
		c, s := w.pair()
		c.shutdown(unix.SHUT_WR)
		c.stays("a write does not block, it fails", writable)
		s.ready("the end", both)
		s.write([]byte("still"))
		c.ready("something has come", both)
		c.read([]byte("still"))
		c.recv("no end yet", unix.EAGAIN)
		if got := c.peer(); got != s.local() {
			w.Errorf("its peer is %v, want %v", got, s.local())
		}
	}},
	{"both sides are shut", func(w *world) {
		c, s := w.pair()
		c.shutdown(unix.SHUT_WR)
		s.ready("the end", both)
		s.shutdown(unix.SHUT_WR)
		for _, e := range []*end{c, s} {
			e.ready("over", over)
			e.recv("over", nil)
			e.send("over", unix.EPIPE)
			w.want("SO_ERROR", e.pending(), nil)
			w.until("the connection is gone", func() bool {
				_, err := e.p.Peer(e.fd)
				return err == unix.ENOTCONN
			})
			e.stays("over", over)
			w.want("shutdown", e.p.Shutdown(e.fd, unix.SHUT_WR), unix.ENOTCONN)
		}
	}},
	{"both sides are shut at the same time", func(w *world) {
		c, s := w.pair()
		c.shutdown(unix.SHUT_WR)
		s.shutdown(unix.SHUT_WR)
		for _, e := range []*end{c, s} {
			e.ready("over", over)
			e.recv("over", nil)
		}
	}},
	{"the peer has closed", func(w *world) {
		c, s := w.pair()
		s.close()
		c.ready("the end", both)
		c.recv("the end", nil)
		c.close()
	}},
	{"bytes for a peer that has closed", func(w *world) {
		c, s := w.pair()
		s.close()
		c.ready("the end", both)
		c.send("the peer's kernel will answer", nil)
		c.ready("reset", broken)
		c.recv("the end of the stream came first", nil)
		w.want("SO_ERROR", c.pending(), unix.EPIPE)
		c.recv("the end of the stream, again", nil)
		c.send("reset", unix.EPIPE)
	}},
}
