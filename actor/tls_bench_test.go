package actor

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// BenchmarkConnect measures a connection from Dial to Established and to its Close, on the embedded
// device over loopback, one after the other. Beside it is the cost of TLS alone: a TCP connection
// over loopback and crypto/tls's handshake on it, with the same certificates, which are those of
// both sides, and without sessions.
func BenchmarkConnect(b *testing.B) {
	b.Run("insecure", func(b *testing.B) { connects(b, nil) })
	b.Run("PSK", func(b *testing.B) { connects(b, psk(b)) })
	b.Run("TLS", func(b *testing.B) { connects(b, mtls(b)) })
	b.Run("TCP", func(b *testing.B) { connectsTCP(b, nil) })
	b.Run("crypto_tls", func(b *testing.B) { connectsTCP(b, mtls(b).TLS) })
}

func connects(b *testing.B, sec *Security) {
	sys := testSystem(b)
	rt := openIWARP(b, sys)
	cfg := IDConfig{Security: sec}
	server, client := newProbe(b, sys, rt.OnLoop(), nil), newProbe(b, sys, rt.OnLoop(), nil)
	server.reactWith(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			ctx.Respond(&Accept{})
		}
	})
	_, at := listen(server, rt, "127.0.0.1:0", cfg)
	b.ReportAllocs()
	start := cpuTime()
	defer func() { b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op") }()
	for b.Loop() {
		id := rt.CreateID(client.pid, cfg)
		client.send(id, &Dial{Addr: at})
		next[*Established](client)
		client.send(id, &Close{})
		until[*Closed](client)
		until[*Closed](server)
	}
}

func connectsTCP(b *testing.B, cfg *tls.Config) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if cfg != nil {
		cfg.SessionTicketsDisabled, cfg.ServerName = true, "127.0.0.1"
	}
	theirs := make(chan error)
	go func() {
		defer close(theirs)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if cfg != nil {
				c = tls.Server(c, cfg)
			}
			theirs <- greet(c)
		}
	}()
	b.ReportAllocs()
	start := cpuTime()
	defer func() { b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op") }()
	for b.Loop() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		if cfg != nil {
			c = tls.Client(c, cfg)
		}
		if err := greet(c); err != nil {
			b.Fatal(err)
		}
		if err := <-theirs; err != nil {
			b.Fatal(err)
		}
	}
	_ = l.Close()
	for range theirs {
		b.Error("a connection that nobody has made")
	}
}

// greet sends a byte and takes the peer's: both have done the handshake then.
func greet(c net.Conn) error {
	defer c.Close()
	b := []byte{1}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err := c.Read(b)
	return err
}
