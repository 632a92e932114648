//go:build linux && rdma

package rdmanet

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/nettest"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid/ucm"
)

// These tests run where the kernel has RDMA devices: see lab/vm.

// onKernel opens a runtime over the kernel's devices, and a listener there.
func onKernel(tb testing.TB, cfg ...Config) (*rdma.Runtime, *Listener) {
	tb.Helper()
	addr := os.Getenv("RDMA_ADDR")
	if addr == "" {
		tb.Fatal("RDMA_ADDR is not set: this test runs in the rig's machine")
	}
	rt := openRuntime(tb, rdma.Config{Device: ucm.New(), Security: &rdma.Security{Mode: rdma.Insecure}})
	l, err := Listen(tb.Context(), rt, addr+":0", cfg...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	return rt, l.(*Listener)
}

// few returns a Config with few receives, because there each connection has memory for all of them.
func few() Config { return Config{MaxMessage: 16 << 10, Credits: 8} }

// The tests that every net.Conn has to pass.
func TestKernelConn(t *testing.T) {
	rt, l := onKernel(t, few())
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c1, err = Dial(t.Context(), rt, l.Addr().String(), few())
		if err != nil {
			return nil, nil, nil, err
		}
		c2, err = l.Accept()
		return c1, c2, func() {
			_ = c1.Close()
			_ = c2.Close()
		}, err
	})
}

// Each half ends independently, with a megabyte each way.
func TestKernelHalfClose(t *testing.T) {
	rt, l := onKernel(t)
	client, server := connect(t, rt, l)
	go func() {
		_, _ = io.Copy(server, server)
		_ = server.Close()
	}()
	want := random(1 << 20)
	go func() {
		_, _ = client.Write(want)
		_ = client.CloseWrite()
	}()
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

// The standard library's HTTP, over ten concurrent connections.
func TestKernelHTTP(t *testing.T) {
	rt, l := onKernel(t, few())
	srv := serveHTTP(t, l, http.HandlerFunc(echoHandler))
	srv.Start()
	var dialed atomic.Int32
	client := &http.Client{Transport: transport(t, NewDialer(rt, few()), &dialed)}
	done := make(chan struct{})
	for i := range 10 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 10 {
				body := random(i * 10_000)
				res, err := client.Post(srv.URL, "application/octet-stream", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(res.Body)
				if _ = res.Body.Close(); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%d bytes came back of %d, %v", len(got), len(body), err)
				}
			}
		}()
	}
	for range 10 {
		<-done
	}
}

// Ten concurrent connections, with a megabyte each way on each.
func TestKernelConnections(t *testing.T) {
	rt, l := onKernel(t, few())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	want := random(1 << 20)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			c, err := Dial(t.Context(), rt, l.Addr().String(), few())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			go func() {
				_, _ = c.Write(want)
				_ = c.(*Conn).CloseWrite()
			}()
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back, %v", len(got), err)
			}
		})
	}
	all.Wait()
}
