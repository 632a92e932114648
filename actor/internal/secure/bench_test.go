package secure

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"testing"

	"github.com/rdmactor/rdmactor/internal/certtest"
)

var benchLengths = []int{64, 1 << 10, 16 << 10, 1 << 20}

func BenchmarkSeal(b *testing.B) {
	for _, s := range suites {
		for _, n := range benchLengths {
			b.Run(fmt.Sprintf("%v/%d", s, n), func(b *testing.B) {
				sealer, _ := pair(b, s)
				message := make([]byte, n, n+Overhead)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					sealer.records, sealer.bytes = 0, 0 // the same numbers again: no connection
					if _, err := sealer.Seal(message[:0], message); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkOpen opens the same record again and again, into other memory.
func BenchmarkOpen(b *testing.B) {
	for _, s := range suites {
		for _, n := range benchLengths {
			b.Run(fmt.Sprintf("%v/%d", s, n), func(b *testing.B) {
				sealer, opener := pair(b, s)
				sealed, err := sealer.Seal(nil, make([]byte, n))
				if err != nil {
					b.Fatal(err)
				}
				message := make([]byte, 0, n)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					opener.records, opener.bytes = 0, 0
					if _, err := opener.Open(message, sealed); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLarge seals a large message in its memory, then opens it there.
func BenchmarkLarge(b *testing.B) {
	for _, s := range suites {
		for _, n := range []int{64 << 10, 1 << 20, 16 << 20} {
			b.Run(fmt.Sprintf("%v/%d", s, n), func(b *testing.B) {
				sealer, opener := largePair(b, s)
				memory := make([]byte, LargeLen(n))
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					m, number, err := sealer.Begin(memory, memory[:n])
					if err != nil {
						b.Fatal(err)
					}
					for m.Next() { // each call seals a segment
					}
					if err := openLarge(opener, memory, n, number); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkPSK measures a handshake in PSK mode: both sides, as far as the first message, and
// beside it only its X25519 operations.
func BenchmarkPSK(b *testing.B) {
	who := credential("node-1", 1)
	k := keys(b, who)
	for _, s := range pskSuites {
		b.Run(s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				client, request, err := NewPSKClient(who, s, route, requestHello)
				if err != nil {
					b.Fatal(err)
				}
				server, reply, err := NewPSKServer(k, s, route, requestHello, request[:], replyHello)
				if err != nil {
					b.Fatal(err)
				}
				channel, err := client.Finish(replyHello, reply[:])
				if err != nil {
					b.Fatal(err)
				}
				first, err := channel.Seal.Seal(nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, _, err := server.Confirm(nil, first); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("X25519 alone", func(b *testing.B) {
		for b.Loop() {
			var e [2]*ecdh.PrivateKey
			for i := range e {
				var err error
				if e[i], err = ecdh.X25519().GenerateKey(rand.Reader); err != nil {
					b.Fatal(err)
				}
			}
			for i := range e {
				public := e[i].PublicKey()
				if _, err := e[1-i].ECDH(public); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkTLS measures a handshake in TLS mode, both sides, with certificates of both, and beside
// it crypto/tls on an existing TCP connection.
func BenchmarkTLS(b *testing.B) {
	client, server := configs(b, certtest.New(b))
	b.Run("frames", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, err := NewTLSClient(b.Context(), client, tlsPeer)
			if err != nil {
				b.Fatal(err)
			}
			s, err := NewTLSServer(b.Context(), server, tlsPeer)
			if err != nil {
				b.Fatal(err)
			}
			if ce, se := (&sides{client: c, server: s}).run(nil); ce != nil || se != nil {
				b.Fatal(ce, se)
			}
			c.Close()
			s.Close()
		}
	})
	client.SessionTicketsDisabled, server.SessionTicketsDisabled = true, true
	b.Run("crypto_tls over TCP", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			near, far := tcpPair(b)
			b.StartTimer()
			theirs := make(chan error, 1)
			go func() { theirs <- tls.Server(far, server).HandshakeContext(b.Context()) }()
			if err := tls.Client(near, client).HandshakeContext(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := <-theirs; err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			_, _ = near.Close(), far.Close()
			b.StartTimer()
		}
	})
}

// tcpPair returns the two ends of a connection.
func tcpPair(b *testing.B) (near, far net.Conn) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		b.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		b.Fatal(err)
	}
	return near, far
}
