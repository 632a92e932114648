package rdmanet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serveHTTP runs the standard library's server over a Listener.
func serveHTTP(tb testing.TB, l net.Listener, h http.Handler) *httptest.Server {
	tb.Helper()
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	tb.Cleanup(srv.Close)
	return srv
}

// transport returns the standard library's over a Dialer. It counts the connections that it dials.
func transport(tb testing.TB, d *Dialer, dialed *atomic.Int32) *http.Transport {
	t := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialed.Add(1)
		return d.DialContext(ctx, network, addr)
	}}
	tb.Cleanup(t.CloseIdleConnections)
	return t
}

// echoHandler answers with the request's body, which HTTP/1 has to read first.
func echoHandler(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = w.Write(b)
}

// post sends a body, and checks the echo.
func post(tb testing.TB, c *http.Client, url string, body []byte) *http.Response {
	tb.Helper()
	res, err := c.Post(url, "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Equal(got, body) {
		tb.Fatalf("%d bytes came back of %d, %v", len(got), len(body), err)
	}
	return res
}

// The standard library's HTTP, over one kept connection: small and large bodies; in the clear, over
// TLS, and HTTP/2 both ways.
func TestHTTP(t *testing.T) {
	for _, c := range []struct {
		name       string
		proto      string
		tls, http2 bool
	}{
		{"HTTP/1", "HTTP/1.1", false, false},
		{"HTTP/1 over TLS", "HTTP/1.1", true, false},
		{"HTTP/2 in the clear", "HTTP/2.0", false, true},
		{"HTTP/2 over TLS", "HTTP/2.0", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := serveHTTP(t, listen(t, openRuntime(t)), http.HandlerFunc(echoHandler))
			var dialed atomic.Int32
			tr := transport(t, NewDialer(openRuntime(t)), &dialed)
			var protocols http.Protocols
			protocols.SetHTTP1(!c.http2)
			protocols.SetHTTP2(c.http2 && c.tls)
			protocols.SetUnencryptedHTTP2(c.http2 && !c.tls)
			tr.Protocols, srv.Config.Protocols = &protocols, &protocols
			if c.tls {
				srv.EnableHTTP2 = c.http2
				srv.StartTLS()
				tr.TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
			} else {
				srv.Start()
			}
			client := &http.Client{Transport: tr}
			for _, size := range []int{0, 1, 4096, 100_000, 10 << 20} {
				if res := post(t, client, srv.URL, random(size)); res.Proto != c.proto {
					t.Errorf("spoken was %s", res.Proto)
				}
			}
			if n := dialed.Load(); n != 1 {
				t.Errorf("%d connections were made for requests one after the other", n)
			}
		})
	}
}

// If a client gives up in the middle of a response, the server notices it, and the client's error
// is its context's.
func TestHTTPClientGivesUp(t *testing.T) {
	noticed := make(chan error, 1)
	srv := serveHTTP(t, listen(t, openRuntime(t)), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("begin"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		noticed <- context.Cause(r.Context())
	}))
	srv.Start()
	var dialed atomic.Int32
	client := &http.Client{Transport: transport(t, NewDialer(openRuntime(t)), &dialed)}
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("the client reads %v", err)
	}
	if err := <-noticed; !errors.Is(err, context.Canceled) {
		t.Errorf("the server's request ended with %v", err)
	}
}

// A handler's read deadline interrupts a body that does not arrive, and the response is still sent.
func TestHTTPReadDeadline(t *testing.T) {
	srv := serveHTTP(t, listen(t, openRuntime(t)), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Error(err)
		}
		_, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, errors.Is(err, os.ErrDeadlineExceeded))
	}))
	srv.Start()
	var dialed atomic.Int32
	client := &http.Client{Transport: transport(t, NewDialer(openRuntime(t)), &dialed)}
	body, never := io.Pipe()
	defer never.Close()
	res, err := client.Post(srv.URL, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != "true" {
		t.Errorf("the handler saw its deadline: %s, %v", got, err)
	}
}

// The server's Shutdown waits for the request under way, whose response arrives whole, and ends
// idle connections.
func TestHTTPShutdown(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-end
		_, _ = w.Write(make([]byte, 1<<20))
	})}
	l := listen(t, openRuntime(t))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	var dialed atomic.Int32
	client := &http.Client{Transport: transport(t, NewDialer(openRuntime(t)), &dialed)}
	got := make(chan int64, 1)
	go func() {
		res, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			t.Error(err)
			got <- 0
			return
		}
		defer res.Body.Close()
		n, err := io.Copy(io.Discard, res.Body)
		if err != nil {
			t.Error(err)
		}
		got <- n
	}()
	<-begun
	srv.RegisterOnShutdown(func() { close(end) })
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := <-got; n != 1<<20 {
		t.Errorf("%d bytes arrived", n)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// Clients that leave in the middle of a download delay a server's Shutdown no longer than over TCP,
// even if they sent bytes that the server does not read: their connections linger, but the
// handlers' writes reset them.
func TestHTTPShutdownAfterClientsHaveGone(t *testing.T) {
	const clients = 8
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 64<<10))
		}
	})}
	l := listen(t, openRuntime(t))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	var dialed atomic.Int32
	client := &http.Client{Transport: transport(t, NewDialer(openRuntime(t)), &dialed)}
	var downloads sync.WaitGroup
	for range clients {
		downloads.Go(func() {
			res, err := client.Post("http://"+l.Addr().String(), "text/plain", bytes.NewReader(make([]byte, 400<<10)))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := io.CopyN(io.Discard, res.Body, 1<<20); err != nil {
				t.Error(err)
			}
			// closed with unread bytes: the transport closes the connection
			_ = res.Body.Close()
		})
	}
	downloads.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), patience) // less than they may linger
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
