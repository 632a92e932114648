package conformance

import (
	"golang.org/x/sys/unix"
)

// resets is how connections are torn down.
var resets = []fact{
	{"a reset, read", func(w *world) {
		c, s := w.pair()
		s.abort()
		c.ready("reset", broken)
		c.recv("the first read has the error", unix.ECONNRESET)
		c.ready("the error was taken", over)
		c.recv("the next read has the end", nil)
		c.send("the next write", unix.EPIPE)
		_, err := c.p.Peer(c.fd)
		w.want("getpeername", err, unix.ENOTCONN)
		w.want("shutdown", c.p.Shutdown(c.fd, unix.SHUT_WR), unix.ENOTCONN)
	}},
	{"a reset, written", func(w *world) {
		c, s := w.pair()
		s.abort()
		c.ready("reset", broken)
		c.send("the first write has the error", unix.ECONNRESET)
		c.send("the next write", unix.EPIPE)
		c.recv("the next read has the end", nil)
	}},
	{"a reset, asked for", func(w *world) {
		c, s := w.pair()
		s.abort()
		c.ready("reset", broken)
		w.want("SO_ERROR", c.pending(), unix.ECONNRESET)
		w.want("SO_ERROR for the second time", c.pending(), nil)
		c.recv("the error was taken", nil)
	}},
	{"close with bytes unread", func(w *world) {
		c, s := w.pair()
		c.write([]byte("for nobody"))
		s.ready("something has come", both)
		s.close()
		c.ready("reset", broken)
		c.recv("reset", unix.ECONNRESET)
	}},
	{"what came before a reset can be read", func(w *world) {
		c, s := w.pair()
		s.write([]byte("why"))
		c.ready("something has come", both)
		s.abort()
		c.ready("reset", broken)
		c.read([]byte("why"))
		c.recv("then the error", unix.ECONNRESET)
		c.recv("then the end", nil)
	}},
	{"what came before a reset can be read after a write", func(w *world) {
		c, s := w.pair()
		s.write([]byte("why"))
		c.ready("something has come", both)
		s.abort()
		c.ready("reset", broken)
		c.send("the write has the error", unix.ECONNRESET)
		c.read([]byte("why"))
		c.recv("then the end", nil)
	}},
	{"a reset of a full socket", func(w *world) {
		c, s := w.pair()
		c.fill()
		s.abort()
		c.ready("reset", broken)
		c.send("reset", unix.ECONNRESET)
	}},
	{"a reset after the end of the stream", func(w *world) {
		c, s := w.pair()
		s.shutdown(unix.SHUT_WR)
		c.ready("the end", both)
		s.abort()
		c.ready("reset", broken)
		c.recv("the end of the stream came first", nil)
		c.send("the error", unix.EPIPE)
		w.want("SO_ERROR", c.pending(), nil)
	}},
	{"a reset after one's own end of the stream", func(w *world) {
		c, s := w.pair()
		c.shutdown(unix.SHUT_WR)
		s.ready("the end", both)
		s.abort()
		c.ready("reset", broken)
		c.recv("reset", unix.ECONNRESET)
		c.recv("then the end", nil)
	}},
	{"bytes for a peer that has closed with a reset", func(w *world) {
		c, s := w.pair()
		s.abort()
		c.ready("reset", broken)
		w.want("SO_ERROR", c.pending(), unix.ECONNRESET)
		for range 3 {
			c.send("no connection", unix.EPIPE)
		}
		c.ready("no new error", over)
	}},
}
