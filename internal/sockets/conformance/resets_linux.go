package conformance

import (
	"golang.org/x/sys/unix"
)

// resets is how connections are torn down.
var resets = []fact{
	{"a reset, read", func(w *world) {
		c, s := w.connectedPair()
		s.abort()
		c.awaitReady("reset", broken)
		c.recv("the first read has the error", unix.ECONNRESET)
		c.awaitReady("the error was taken", over)
		c.recv("the next read has the end", nil)
		c.send("the next write", unix.EPIPE)
		_, err := c.p.Peer(c.fd)
		w.want("getpeername", err, unix.ENOTCONN)
		w.want("shutdown", c.p.Shutdown(c.fd, unix.SHUT_WR), unix.ENOTCONN)
	}},
	{"a reset, written", func(w *world) {
		c, s := w.connectedPair()
		s.abort()
		c.awaitReady("reset", broken)
		c.send("the first write has the error", unix.ECONNRESET)
		c.send("the next write", unix.EPIPE)
		c.recv("the next read has the end", nil)
	}},
	{"a reset, asked for", func(w *world) {
		c, s := w.connectedPair()
		s.abort()
		c.awaitReady("reset", broken)
		w.want("SO_ERROR", c.takeError(), unix.ECONNRESET)
		w.want("SO_ERROR for the second time", c.takeError(), nil)
		c.recv("the error was taken", nil)
	}},
	{"close with bytes unread", func(w *world) {
		c, s := w.connectedPair()
		c.write([]byte("for nobody"))
		s.awaitReady("something has come", both)
		s.close()
		c.awaitReady("reset", broken)
		c.recv("reset", unix.ECONNRESET)
	}},
	{"what came before a reset can be read", func(w *world) {
		c, s := w.connectedPair()
		s.write([]byte("why"))
		c.awaitReady("something has come", both)
		s.abort()
		c.awaitReady("reset", broken)
		c.read([]byte("why"))
		c.recv("then the error", unix.ECONNRESET)
		c.recv("then the end", nil)
	}},
	{"what came before a reset can be read after a write", func(w *world) {
		c, s := w.connectedPair()
		s.write([]byte("why"))
		c.awaitReady("something has come", both)
		s.abort()
		c.awaitReady("reset", broken)
		c.send("the write has the error", unix.ECONNRESET)
		c.read([]byte("why"))
		c.recv("then the end", nil)
	}},
	{"a reset of a full socket", func(w *world) {
		c, s := w.connectedPair()
		c.fillBuffer()
		s.abort()
		c.awaitReady("reset", broken)
		c.send("reset", unix.ECONNRESET)
	}},
	{"a reset after the end of the stream", func(w *world) {
		c, s := w.connectedPair()
		s.shutdown(unix.SHUT_WR)
		c.awaitReady("the end", both)
		s.abort()
		c.awaitReady("reset", broken)
		c.recv("the end of the stream came first", nil)
		c.send("the error", unix.EPIPE)
		w.want("SO_ERROR", c.takeError(), nil)
	}},
	{"a reset after one's own end of the stream", func(w *world) {
		c, s := w.connectedPair()
		c.shutdown(unix.SHUT_WR)
		s.awaitReady("the end", both)
		s.abort()
		c.awaitReady("reset", broken)
		c.recv("reset", unix.ECONNRESET)
		c.recv("then the end", nil)
	}},
	{"bytes for a peer that has closed with a reset", func(w *world) {
		c, s := w.connectedPair()
		s.abort()
		c.awaitReady("reset", broken)
		w.want("SO_ERROR", c.takeError(), unix.ECONNRESET)
		for range 3 {
			c.send("no connection", unix.EPIPE)
		}
		c.awaitReady("no new error", over)
	}},
}
