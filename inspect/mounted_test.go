package inspect

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// TestBehindAProxy: a proxy with another prefix and name passes on the page, its news and its
// actions.
func TestBehindAProxy(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Hosts: []string{"ops.example.com"}, Actions: &Actions{Token: token}}, rdma.Config{})
	backend, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.StripPrefix("/ops", &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(backend) }}))
	t.Cleanup(front.Close)
	r.url = front.URL + "/ops/"
	asks := []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://ops.example.com"}
	for path, want := range map[string]string{"": `"states"`, "ids": `"rows"`, "page.js": "use strict", "states.svg": "<svg", "flight?format=text": "taken"} {
		if status, _, body := r.get(path, asks...); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%q: %d %.100s", path, status, body)
		}
	}
	next, stop := r.watch("view=loops")
	defer stop()
	for range 2 {
		if name, _ := next(); name != "news" {
			t.Errorf("an event %q", name)
		}
	}
	if status, answer := r.post("actions/capture", `{"peer":"::1"}`, append(asks, with...)...); status != http.StatusOK {
		t.Errorf("an action: %d %s", status, answer)
	}
	asks[3] = "https://evil.example"
	if status, _ := r.post("actions/capture-stop", `{"capture":1}`, append(asks, with...)...); status != http.StatusForbidden {
		t.Errorf("an action under another name: %d", status)
	}
}

// TestMountedElsewhere: the page is at Config.Path, even with a stripped prefix.
func TestMountedElsewhere(t *testing.T) {
	for _, path := range []string{"/", "/a/b/"} {
		r := newRig(t, Config{Interval: minInterval, Path: path}, rdma.Config{})
		prefixed := httptest.NewServer(http.StripPrefix("/x", r.page))
		t.Cleanup(prefixed.Close)
		for _, base := range []string{r.url, prefixed.URL + "/x" + path} {
			r.url = base
			_, _, html := r.get("", "Accept", "text/html")
			if strings.Contains(html, `"/`) { // all its links are relative
				t.Errorf("%s:\n%s", base, html)
			}
			if v := read[idsView](r, "ids"); v.Total != 0 {
				t.Errorf("%s: %+v", base, v)
			}
		}
	}
}

// TestHTTP2: there, too, a viewer that does not read is dropped, and its connection goes on.
func TestHTTP2(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	r.idle(500)
	server := httptest.NewUnstartedServer(r.page)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ask := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+r.page.cfg.Path+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	if resp := ask("events?view=ids&size=500"); resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Proto, resp.Status)
	}
	r.until("it is dropped", func() bool { return r.page.viewers.Load() == 0 })
	if resp := ask("loops"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}
