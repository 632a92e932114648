package inspect

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// ask returns the status of a request with that Host and those headers.
func (r *rig) ask(method, path, host string, header ...string) int {
	r.Helper()
	req := httptest.NewRequest(method, "http://localhost"+r.page.cfg.Path+path, nil)
	req.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.page.ServeHTTP(w, req)
	return w.Code
}

// TestHosts: whatever the resource, the page answers under names that no attacker can point to it,
// and no others.
func TestHosts(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Hosts: []string{"ops.example.com"}, Actions: &Actions{Token: token}}, rdma.Config{})
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1:8080", "10.1.2.3:80", "[::1]:8080", "[::1]", "[fe80::1%25eth0]:80", "localhost", "LOCALHOST:80", "localhost.:80",
		"rdma.localhost:1", "ops.example.com", "Ops.Example.COM:443", "",
	} {
		for _, path := range []string{"", "page.js", "ids", "flight", "states.svg"} {
			if status := r.ask(http.MethodGet, path, host); status != http.StatusOK {
				t.Errorf("%q, %q: %d", host, path, status)
			}
		}
	}
	for _, host := range []string{
		"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "x.ops.example.com", "example.com",
		"2130706433", "0x7f.1", "127.1", "*", "[", "a b", "127.0.0.1:80:80",
	} {
		for _, path := range []string{"", "page.js", "ids", "events?view=ids", "actions", "captures/1", "nowhere"} {
			if status := r.ask(http.MethodGet, path, host, "Authorization", "Bearer "+token); status != http.StatusForbidden {
				t.Errorf("%q, %q: %d", host, path, status)
			}
		}
		if status := r.ask(http.MethodPost, "actions/level", host, "Authorization", "Bearer "+token); status != http.StatusForbidden {
			t.Errorf("%q, an action: %d", host, status)
		}
	}
	r.page.cfg.Hosts = []string{anyHost}
	if status := r.ask(http.MethodGet, "ids", "evil.example"); status != http.StatusOK {
		t.Errorf("where any name will do: %d", status)
	}
}

// TestOwnName: the page answers under the name of its machine, with and without the domain.
func TestOwnName(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	short, _, _ := strings.Cut(name, ".")
	r := newRig(t, Config{Interval: minInterval}, rdma.Config{})
	for _, host := range []string{name, name + ":8080", strings.ToUpper(name), name + ".", short} {
		if status := r.ask(http.MethodGet, "ids", host); status != http.StatusOK {
			t.Errorf("%q: %d", host, status)
		}
	}
	if status := r.ask(http.MethodGet, "ids", name+".evil.example"); status != http.StatusForbidden {
		t.Errorf("a stranger's name that begins so: %d", status)
	}
}

// TestOtherSites: requests of a script or a frame of another site are refused, and a link there
// works.
func TestOtherSites(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Hosts: []string{"ops.example.com"}}, rdma.Config{})
	const host = "127.0.0.1:80"
	for name, header := range map[string][]string{
		"a script elsewhere":     {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
		"on another port":        {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"},
		"of an old browser":      {"Origin", "http://evil.example"},
		"of another port":        {"Origin", "http://127.0.0.1:81"},
		"of nowhere":             {"Origin", "null"},
		"of what is no origin":   {"Origin", "http://%zz"},
		"a new kind of relation": {"Sec-Fetch-Site", "future-site"},
		"a frame elsewhere":      {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		"an object elsewhere":    {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "object"},
		"a name led to a proxy":  {"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Origin", "http://evil.example"},
		"a sandbox's":            {"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Origin", "null"},
	} {
		for _, path := range []string{"ids", "events?view=ids", "page.js"} {
			if status := r.ask(http.MethodGet, path, host, header...); status != http.StatusForbidden {
				t.Errorf("%s, %q: %d", name, path, status)
			}
		}
	}
	for name, header := range map[string][]string{
		"the page itself":      {"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Origin", "http://127.0.0.1:80"},
		"the page, an old one": {"Origin", "http://127.0.0.1:80"},
		"the address bar":      {"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"},
		"a link":               {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
		"an old browser's":     {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"},
		"behind a proxy":       {"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Origin", "https://ops.example.com"},
		"curl":                 nil,
	} {
		if status := r.ask(http.MethodGet, "ids", host, header...); status != http.StatusOK {
			t.Errorf("%s: %d", name, status)
		}
	}
}
