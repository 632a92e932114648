package workswith

import (
	"net"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"
)

// fasthttp's client and server, from many goroutines. The server knows the client's address, by
// which it limits connections.
func TestFastHTTP(t *testing.T) {
	l, d := listen(t)
	server := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) {
		if !c.RemoteIP().IsLoopback() {
			t.Errorf("the client's address is %v", c.RemoteIP())
		}
		c.SetBody(c.PostBody())
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	client := &fasthttp.HostClient{Addr: l.Addr().String(), Dial: func(addr string) (net.Conn, error) {
		return d.DialContext(t.Context(), "", addr)
	}}
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			defer fasthttp.ReleaseRequest(req)
			defer fasthttp.ReleaseResponse(res)
			for range 100 {
				req.SetRequestURI("http://" + l.Addr().String() + "/")
				req.Header.SetMethod("POST")
				req.SetBodyString("hello")
				if err := client.Do(req, res); err != nil || string(res.Body()) != "hello" {
					t.Errorf("%q, %v", res.Body(), err)
					return
				}
			}
		})
	}
	callers.Wait()
	client.CloseIdleConnections()
	if err := server.Shutdown(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
