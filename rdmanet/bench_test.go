package rdmanet

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// networks runs a benchmark over this package and over TCP on loopback.
func networks(b *testing.B, run func(b *testing.B, l net.Listener, dial *Dialer)) {
	b.Run("rdma", func(b *testing.B) {
		run(b, listen(b, openRuntime(b)), NewDialer(openRuntime(b)))
	})
	b.Run("tcp", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close() })
		run(b, l, nil)
	})
}

// ends returns both ends of a connection.
func ends(b *testing.B, l net.Listener, dial *Dialer) (client, server net.Conn) {
	b.Helper()
	var err error
	if dial != nil {
		client, err = dial.Dial(b.Context(), l.Addr().String())
	} else {
		client, err = net.Dial("tcp", l.Addr().String())
	}
	if err == nil {
		server, err = l.Accept()
	}
	if err != nil {
		b.Fatal(err)
	}
	return client, server
}

// BenchmarkEcho measures a round trip of 64 bytes.
func BenchmarkEcho(b *testing.B) {
	networks(b, func(b *testing.B, l net.Listener, dial *Dialer) {
		client, server := ends(b, l, dial)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(struct{ io.Writer }{server}, struct{ io.Reader }{server})
			_ = server.Close()
		}()
		p := make([]byte, 64)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.Write(p); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(client, p); err != nil {
				b.Fatal(err)
			}
		}
		_ = client.Close()
		<-done
	})
}

// BenchmarkBulk measures one direction, with Writes of several sizes.
func BenchmarkBulk(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			networks(b, func(b *testing.B, l net.Listener, dial *Dialer) {
				client, server := ends(b, l, dial)
				done := make(chan int64)
				go func() {
					n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{server}, make([]byte, 128<<10))
					_ = server.Close()
					done <- n
				}()
				p := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				written := int64(0)
				for b.Loop() {
					n, err := client.Write(p)
					if err != nil {
						b.Fatal(err)
					}
					written += int64(n)
				}
				_ = client.Close()
				if n := <-done; n != written {
					b.Errorf("%d bytes arrived of %d", n, written)
				}
			})
		})
	}
}

// BenchmarkHTTP measures GETs over 64 concurrent connections; b.N counts requests.
func BenchmarkHTTP(b *testing.B) {
	networks(b, func(b *testing.B, l net.Listener, dial *Dialer) {
		const clients = 64
		body := bytes.Repeat([]byte("x"), 512)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })}
		go func() { _ = srv.Serve(l) }()
		t := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
		if dial != nil {
			t.DialContext = dial.DialContext
		}
		c := &http.Client{Transport: t}
		get := func() error {
			res, err := c.Get("http://" + l.Addr().String())
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			return err
		}
		var wg sync.WaitGroup
		work := make(chan struct{}, clients)
		for range clients {
			wg.Go(func() {
				for range work {
					if err := get(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		b.ReportAllocs()
		for b.Loop() {
			work <- struct{}{}
		}
		close(work)
		wg.Wait()
		t.CloseIdleConnections()
		_ = srv.Close()
	})
}
