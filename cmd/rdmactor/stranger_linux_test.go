package main

import (
	"net"
	"testing"
)

// TestPlainTCP: a listener that does not implement iWARP is reported as such, whether it is silent,
// hangs up, or answers in another protocol.
func TestPlainTCP(t *testing.T) {
	for name, meets := range map[string]func(net.Conn){
		"silent":   func(net.Conn) {},
		"hangs up": func(c net.Conn) { c.Close() },
		"HTTP":     func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				meets(c)
			}
		}()
		for _, args := range [][]string{{"ping"}, {"perf"}, {"time", "-n", "1"}} {
			args = append(args, "-c", "-a", l.Addr().String(), "--device", "iwarp", "--timeout", "300ms")
			r := begin(t, nil, args...)
			if r.mustFail("not speak"); t.Failed() {
				t.Fatalf("%s peer", name)
			}
		}
		l.Close()
		<-ended
	}
}
