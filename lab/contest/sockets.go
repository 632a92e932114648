package contest

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// Listen makes a Service that calls serve with each connection of l, each on its own goroutine.
func Listen(l net.Listener, serve func(net.Conn)) measure.Service {
	var mu sync.Mutex
	conns := make(map[net.Conn]bool)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			done.Go(func() {
				serve(c)
				mu.Lock()
				delete(conns, c)
				mu.Unlock()
				_ = c.Close()
			})
		}
	})
	return measure.Service{Addr: l.Addr().String(), Close: func() error {
		err := l.Close()
		mu.Lock()
		for c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		done.Wait()
		return err
	}}
}

// ListenTCP is Listen on a new TCP listener on loopback.
func ListenTCP(serve func(net.Conn)) (measure.Service, error) {
	l, err := net.Listen("tcp", Loopback)
	if err != nil {
		return measure.Service{}, err
	}
	return Listen(l, serve), nil
}

// socket is a TCP connection that uses read(2) and write(2) directly, without Go's poller.
type socket struct {
	net.Conn          // closed
	f        *os.File // not closed while a call may use it
	fd       int
}

// connOfKind returns a connection of the entry's kind: c, c under TLS, or a socket that blocks or
// spins. over is tls.Server or tls.Client. The first Read or Write does the handshake.
func connOfKind(c net.Conn, e measure.Entry, over func(net.Conn, *tls.Config) *tls.Conn) (net.Conn, error) {
	switch e.Contestant {
	case "net.Conn":
		return c, nil
	case cryptoTLS:
		config, err := tlsConfig()
		return over(c, config), err
	}
	f, err := c.(*net.TCPConn).File()
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, err
	}
	s := &socket{c, f, int(f.Fd())}
	return s, unix.SetNonblock(s.fd, e.Contestant == "spinning")
}

// Close closes the connection. It also ends a blocked Read or Write.
func (s *socket) Close() error {
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // the peer may have gone
	return nil
}

func mustRetry(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) }

func (s *socket) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(s.fd, b)
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case !mustRetry(err):
			return 0, err
		}
	}
}

func (s *socket) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n, err := unix.Write(s.fd, rest)
		if err != nil && !mustRetry(err) {
			return len(b) - len(rest), err
		}
		rest = rest[max(n, 0):]
	}
	return len(b), nil
}

// listenPlain calls ListenTCP, and makes connections of the entry's kind.
func listenPlain(e measure.Entry, serve func(net.Conn)) (measure.Service, error) {
	return ListenTCP(func(c net.Conn) {
		c, err := connOfKind(c, e, tls.Server)
		if err != nil {
			return // the client will report the failure
		}
		defer c.Close()
		serve(c)
	})
}

func dialPlain(addr string, e measure.Entry) (net.Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return connOfKind(c, e, tls.Client)
}

// Echo sends back every message of PayloadSize that it reads.
func Echo(c net.Conn) {
	b := make([]byte, PayloadSize)
	for {
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func serveEcho(e measure.Entry) (measure.Service, error) { return listenPlain(e, Echo) }

func dialEcho(addr string, e measure.Entry) (Calls, error) {
	c, err := dialPlain(addr, e)
	if err != nil {
		return Calls{}, err
	}
	return connCalls(c), nil
}

// connCalls makes calls, one at a time, that write a message and read it back.
func connCalls(c net.Conn) Calls {
	return Calls{
		Call: func(p, room []byte) ([]byte, error) {
			if _, err := c.Write(p); err != nil {
				return nil, err
			}
			_, err := io.ReadFull(c, room)
			return room, err
		},
		Close: c.Close,
	}
}
