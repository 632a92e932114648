package conformance

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// stream is bytes on a connection.
var stream = []fact{
	{"bytes come in order", func(w *world) {
		c, s := w.connectedPair()
		c.write([]byte("first"))
		s.awaitReady("something has come", both)
		c.write([]byte("second"))
		s.read([]byte("firstsec"))
		s.awaitReady("something is left", both)
		s.read([]byte("ond"))
		s.awaitReady("nothing is left", writable)
		s.recv("nothing is left", unix.EAGAIN)
	}},
	{"slices go and come in order", func(w *world) {
		c, s := w.connectedPair()
		all := patternBytes(5000)
		c.writeGathered(all)
		s.readScattered(all)
		s.awaitReady("nothing is left", writable)
	}},
	{"nothing at all", func(w *world) {
		c, s := w.connectedPair()
		if n, err := c.p.Send(c.fd, nil, 0); n != 0 || err != nil {
			w.Errorf("send of no slices: %d, %v", n, err)
		}
		s.staysReady("nothing was sent", writable)
	}},
	{"no room", func(w *world) {
		c, s := w.connectedPair()
		sent := c.fillBuffer()
		c.awaitReady("it is full", nothing)
		s.awaitReady("it has much to read", both)
		if n, err := c.p.Unacknowledged(c.fd); err != nil || n <= 0 || n > len(sent) {
			w.Errorf("of %d bytes %d are not acknowledged, %v", len(sent), n, err)
		}
		s.read(sent)
		c.awaitReady("there is room again", writable)
		w.until("everything is acknowledged", func() bool {
			n, err := c.p.Unacknowledged(c.fd)
			return err == nil && n == 0
		})
		c.write([]byte("more"))
		s.read([]byte("more"))
	}},
	{"no room, and both ways are independent", func(w *world) {
		c, s := w.connectedPair()
		sent := c.fillBuffer()
		s.write([]byte("back"))
		c.awaitReady("it is full, and something has come", eventloop.Readable)
		c.read([]byte("back"))
		c.awaitReady("it is full", nothing)
		s.read(sent)
	}},
	{"bytes that were sent before a close all come", func(w *world) {
		c, s := w.connectedPair()
		sent := c.fillBuffer()
		c.close()
		s.read(sent)
		s.awaitReady("the end of the stream", both)
		s.recv("the end of the stream", nil)
	}},
	{"bytes that were sent before a shutdown all come", func(w *world) {
		c, s := w.connectedPair()
		sent := c.fillBuffer()
		c.shutdown(unix.SHUT_WR)
		s.read(sent)
		s.awaitReady("the end of the stream", both)
		s.recv("the end of the stream", nil)
		w.until("the FIN is acknowledged", func() bool {
			n, err := c.p.Unacknowledged(c.fd)
			return err == nil && n == 0
		})
		c.awaitReady("it may read", writable)
	}},
}

// writeGathered writes b in slices of several lengths, of which one is empty.
func (e *end) writeGathered(b []byte) {
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

// readScattered reads want into slices of several lengths, of which one is empty.
func (e *end) readScattered(want []byte) {
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
		c, s := w.connectedPair()
		c.write([]byte("last"))
		c.shutdown(unix.SHUT_WR)
		c.send("it has shut its side", unix.EPIPE)
		s.awaitReady("bytes, then the end", both)
		s.read([]byte("last"))
		s.staysReady("the end", both)
		s.recv("the end", nil)
		s.recv("the end, again", nil)
		s.staysReady("the end can be read for ever", both)
	}},
	{"one side is shut", func(w *world) {
		c, s := w.connectedPair()
		c.shutdown(unix.SHUT_WR)
		c.staysReady("a write does not block, it fails", writable)
		s.awaitReady("the end", both)
		s.write([]byte("still"))
		c.awaitReady("something has come", both)
		c.read([]byte("still"))
		c.recv("no end yet", unix.EAGAIN)
		if got := c.peerAddr(); got != s.localAddr() {
			w.Errorf("its peer is %v, want %v", got, s.localAddr())
		}
	}},
	{"both sides are shut", func(w *world) {
		c, s := w.connectedPair()
		c.shutdown(unix.SHUT_WR)
		s.awaitReady("the end", both)
		s.shutdown(unix.SHUT_WR)
		for _, e := range []*end{c, s} {
			e.awaitReady("over", over)
			e.recv("over", nil)
			e.send("over", unix.EPIPE)
			w.want("SO_ERROR", e.takeError(), nil)
			w.until("the connection is gone", func() bool {
				_, err := e.p.Peer(e.fd)
				return err == unix.ENOTCONN
			})
			e.staysReady("over", over)
			w.want("shutdown", e.p.Shutdown(e.fd, unix.SHUT_WR), unix.ENOTCONN)
		}
	}},
	{"both sides are shut at the same time", func(w *world) {
		c, s := w.connectedPair()
		c.shutdown(unix.SHUT_WR)
		s.shutdown(unix.SHUT_WR)
		for _, e := range []*end{c, s} {
			e.awaitReady("over", over)
			e.recv("over", nil)
		}
	}},
	{"the peer has closed", func(w *world) {
		c, s := w.connectedPair()
		s.close()
		c.awaitReady("the end", both)
		c.recv("the end", nil)
		c.close()
	}},
	{"bytes for a peer that has closed", func(w *world) {
		c, s := w.connectedPair()
		s.close()
		c.awaitReady("the end", both)
		c.send("the peer's kernel will answer", nil)
		c.awaitReady("reset", broken)
		c.recv("the end of the stream came first", nil)
		w.want("SO_ERROR", c.takeError(), unix.EPIPE)
		c.recv("the end of the stream, again", nil)
		c.send("reset", unix.EPIPE)
	}},
}
