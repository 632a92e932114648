package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// serve returns a client of a server that answers with handle.
func serve(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c, err := Open(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestOpen(t *testing.T) {
	for in, want := range map[string]string{
		"localhost:8080":                 "http://localhost:8080/debug/rdma/",
		"http://localhost:8080":          "http://localhost:8080/debug/rdma/",
		"https://h/x":                    "https://h/x/",
		"http://h/x/?q=1#f":              "http://h/x/",
		"http://joe:secret@[::1]:80/a/b": "http://joe:xxxxx@[::1]:80/a/b/",
		"ftp://h/":                       "want an http or https URL",
		"http:///x":                      "no host",
		"http://h\x1b[2J/":               "is no URL",
		"http://joe:sec/secret@h/":       "is no URL",
		"":                               "no host",
	} {
		c, err := Open(in)
		got := fmt.Sprint(err)
		if err == nil {
			got = c.String()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "\x1b") || strings.Contains(got, "secret") {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// TestHostile: whatever a server does, a request ends soon, with an error that can be printed.
func TestHostile(t *testing.T) {
	write := func(w http.ResponseWriter, s string) { _, _ = io.WriteString(w, s) }
	endless := func(w io.Writer, r *http.Request, part string) {
		for part = strings.Repeat(part, 1000); r.Context().Err() == nil; {
			if _, err := io.WriteString(w, part); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"says nothing": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within"},
		"says no more": {func(w http.ResponseWriter, r *http.Request) {
			write(w, `{"rows":[`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "no answer within"},
		"ends early": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			write(w, `{"rows":[`)
		}, "unexpected EOF"},
		"hangs up":          {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"endless":           {func(w http.ResponseWriter, r *http.Request) { write(w, `{"rows":["`); endless(w, r, "x") }, "an answer without end"},
		"endless, deep":     {func(w http.ResponseWriter, _ *http.Request) { write(w, `{"rows":`+strings.Repeat("[", 100_000)) }, "no live page (package inspect)"},
		"a page for people": {func(w http.ResponseWriter, _ *http.Request) { write(w, "<html>") }, "no live page (package inspect)"},
		"another program":   {func(w http.ResponseWriter, _ *http.Request) { write(w, `{"status":"ok"}`) }, "no live page (package inspect)"},
		"wrong types":       {func(w http.ResponseWriter, _ *http.Request) { write(w, `{"rows":[{"id":-1}]}`) }, "no live page (package inspect)"},
		"refuses": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no \x1b[2J\u009b", http.StatusServiceUnavailable)
		}, `503, Service Unavailable: no \x1b[2J\u009b`},
		"unknown status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(999) }, "999, an unknown status"},
		"redirects":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, "302, Found"},
		"long header":    {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", roomHeader+1)) }, "header"},
		"a bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			endless(z, r, " ")
		}, "an answer without end"},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, c.handle)
			client.room = 1 << 20
			if c.want == "no answer within" {
				client.patience = 50 * time.Millisecond
			}
			_, err := client.IDs(t.Context(), Query{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error that says %q", err, c.want)
			}
		})
	}
}

// TestHostileBytes: a server that does not implement HTTP.
func TestHostileBytes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("\x1b]0;title\x07\x1b[2J\u009b\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	c, err := Open(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Overview(t.Context())
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\r\n\u009b") {
		t.Errorf("%q", err)
	}
	l.Close()
	if _, err = c.Overview(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestLies: a server returns more rows than requested, the same ones repeatedly, and claims that
// there are more.
func TestLies(t *testing.T) {
	asked := 0
	fresh := false
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		var b bytes.Buffer
		for i := range MostRows {
			n := i + 1
			if fresh {
				n += asked * MostRows
			}
			fmt.Fprintf(&b, `,{"id":%d}`, n)
		}
		fmt.Fprintf(w, `{"page":-7,"pages":999999999,"total":-5,"matched":-5,"rows":[%s]}`, b.Bytes()[1:])
	})
	if v, err := c.IDs(t.Context(), Query{Size: MostRows - 1}); !errors.Is(err, errNoPage) {
		t.Errorf("more rows than were asked for: %d, %v", len(v.Rows), err)
	}
	v, err := c.IDs(t.Context(), Query{Size: MostRows})
	if err != nil || len(v.Rows) != MostRows || v.Total != 0 || v.Matched != 0 || v.Page != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	rows, complete, err := c.All(t.Context(), Query{})
	if err != nil || complete || len(rows) != MostRows {
		t.Errorf("the same rows again: %d rows, complete %v, %v", len(rows), complete, err)
	}
	asked, fresh = 0, true
	rows, complete, err = c.All(t.Context(), Query{})
	if err != nil || complete || len(rows) != MostIDs || asked > MostIDs/MostRows {
		t.Errorf("always more rows: %d rows of %d answers, complete %v, %v", len(rows), asked, complete, err)
	}
}

// TestSmall: a short answer does not use much memory.
func TestSmall(t *testing.T) {
	const room = 4 << 20
	many := func(element string) string { return strings.Repeat(element+",", room/(len(element)+1)/2) + element }
	var names strings.Builder
	for n := range room / 16 {
		fmt.Fprintf(&names, `"%d":1,`, n)
	}
	for name, said := range map[string]string{
		"rows": `{"rows":[` + many("{}") + `]}`, "states": `{"states":{` + names.String() + `"":1},"rows":[]}`,
		"cells":   `{"rows":[{` + names.String() + `"":1}]}`,
		"unknown": `{"x":[` + many("{}") + `],"rows":null}`,
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, said) })
		c.room = room
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.IDs(t.Context(), Query{})
		if name == "cells" {
			_, err = c.Section(t.Context(), "rooms")
		}
		runtime.ReadMemStats(&after)
		// the answer is read into growing slices, and the race detector adds its part
		if grown := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, errNoPage) || grown > 16*room {
			t.Errorf("%s: %v, and %d MiB", name, err, grown>>20)
		}
	}
}

// TestCancelled: the caller can cancel a request.
func TestCancelled(t *testing.T) {
	began := make(chan struct{})
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { close(began); <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := c.ID(ctx, "7"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestGone(t *testing.T) {
	path := ""
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path; http.NotFound(w, r) })
	if _, err := c.ID(t.Context(), "a/b $1?x"); !errors.Is(err, ErrGone) || path != "/debug/rdma/ids/a/b $1?x" {
		t.Errorf("%v, asked for %q", err, path)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"rows":[{"id":7,"state":"connected","in_state_seconds":1e308}],"history":[],"loops":[{"name":"\u001b"}]}`))
	f.Add([]byte(`{"rows":null}`))
	f.Add([]byte(`{"columns":["a","b"],"rows":[{"a":1,"b":"x"},{"a":[{}]}]}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, into := range []any{&IDs{}, &ID{}, &Overview{}, &Section{}, &list[Title]{}} {
			_ = decodeAnswer(data, into)
		}
	})
}
