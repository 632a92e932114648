package workswith

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/coder/websocket"
)

// A WebSocket through net/http's ReverseProxy: client, proxy and server are connected by streams.
func TestWebSocket(t *testing.T) {
	back, toBack := listen(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		for {
			kind, p, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if err := c.Write(r.Context(), kind, p); err != nil {
				t.Error(err)
			}
		}
	})}
	go func() { _ = server.Serve(back) }()
	defer func() { _ = server.Close() }()

	front, toFront := listen(t)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: back.Addr().String()})
	proxy.Transport = &http.Transport{DialContext: toBack.DialContext}
	between := &http.Server{Handler: proxy}
	go func() { _ = between.Serve(front) }()
	defer func() { _ = between.Close() }()

	transport := &http.Transport{DialContext: toFront.DialContext}
	defer transport.CloseIdleConnections()
	c, _, err := websocket.Dial(t.Context(), "ws://"+front.Addr().String(), &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, p, err := c.Read(t.Context()); string(p) != "hello" || err != nil {
			t.Fatalf("%q, %v", p, err)
		}
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
}
