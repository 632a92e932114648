package main

import (
	"io"
	"net"
	"net/rpc"
	"sync"
)

const loopback = "127.0.0.1:0"

// listening is a service on a net.Listener: serve is called with each connection, on a goroutine of its own.
type listening struct {
	l     net.Listener
	mu    sync.Mutex
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

func listen(l net.Listener, serve func(net.Conn)) *listening {
	s := &listening{l: l, conns: make(map[net.Conn]bool)}
	s.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.done.Go(func() {
				serve(c)
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
				_ = c.Close()
			})
		}
	})
	return s
}

func (s *listening) Addr() string { return s.l.Addr().String() }

func (s *listening) Close() error {
	err := s.l.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
	return err
}

func listenTCP(serve func(net.Conn)) (service, error) {
	l, err := net.Listen("tcp", loopback)
	if err != nil {
		return nil, err
	}
	return listen(l, serve), nil
}

// echoConn sends back what comes, in messages of payloadSize.
func echoConn(c net.Conn) {
	b := make([]byte, payloadSize)
	for {
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func serveNet(entry) (service, error) { return listenTCP(echoConn) }

// serial hides that a blocking could be called by many.
type serial struct{ tripper }

func dialNet(addr string, _ entry) (tripper, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return connTrips(c), nil
}

// connTrips writes a message and reads it back.
func connTrips(c net.Conn) tripper {
	return serial{blocking{
		call: func(p, room []byte) error {
			if _, err := c.Write(p); err != nil {
				return err
			}
			if _, err := io.ReadFull(c, room); err != nil {
				return err
			}
			return echoed(room, p)
		},
		close: c.Close,
	}}
}

// EchoService is net/rpc's.
type EchoService struct{}

// Echo answers with its argument.
func (EchoService) Echo(p []byte, reply *[]byte) error {
	*reply = p
	return nil
}

func serveNetRPC(entry) (service, error) {
	s := rpc.NewServer()
	if err := s.RegisterName("Bench", EchoService{}); err != nil {
		return nil, err
	}
	return listenTCP(func(c net.Conn) { s.ServeConn(c) })
}

func dialNetRPC(addr string, _ entry) (tripper, error) {
	c, err := rpc.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return blocking{
		call: func(p, _ []byte) error {
			var got []byte
			if err := c.Call("Bench.Echo", p, &got); err != nil {
				return err
			}
			return echoed(got, p)
		},
		close: c.Close,
	}, nil
}
