package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// startInspected starts a server with a page, and returns the addresses of both.
func startInspected(t *testing.T) (server *started, addr, url string) {
	t.Helper()
	server = start(t, "serve", "--addr", "127.0.0.1:0", "--inspect", "127.0.0.1:0")
	server.log.await(t, "/debug/rdma/\n")
	lines := strings.Split(server.log.String(), "\n")
	addr, _ = strings.CutPrefix(lines[0], "-- serving on ")
	url, _ = strings.CutPrefix(lines[1], "-- the live page is at ")
	return server, addr, url
}

// TestInspect: the page of a server shows its store, and ends with it.
func TestInspect(t *testing.T) {
	server, at, url := startInspected(t)
	if _, err := output(t, "put", "fruit", "apple", "--addr", at); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"sections/store", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var section struct {
		Rows []struct{ Keys, Stored_bytes, Revision int }
	}
	if err := json.NewDecoder(resp.Body).Decode(&section); err != nil {
		t.Fatal(err)
	}
	if len(section.Rows) != 1 || section.Rows[0].Keys != 1 || section.Rows[0].Stored_bytes != 10 || section.Rows[0].Revision != 1 {
		t.Errorf("the store is %+v", section)
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the page is still there")
	}
}
