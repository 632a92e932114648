package live

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/iwarp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }

func program(t *testing.T) (*rdma.Runtime, cmid.Driver) {
	t.Helper()
	device := iwarp.New()
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(sys.Shutdown)
	rt, err := rdma.Open(sys, rdma.Config{Device: device})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Shutdown(t.Context()) })
	return rt, device
}

func serve(t *testing.T, addr string) *Server {
	t.Helper()
	rows := func() []struct{ Name string } { return []struct{ Name string }{{"lobby"}} }
	rt, device := program(t)
	s, err := Serve(addr, rt, device, new(slog.LevelVar), inspect.Rows("rooms", "Rooms", rows))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// do makes a request on a connection that does not outlive it.
func do(t *testing.T, method, url, token string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`{"id": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestServe(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	if resp, body := do(t, "GET", s.URL+"sections/rooms", ""); resp.StatusCode != 200 || !strings.Contains(body, "lobby") {
		t.Errorf("the section: %s %q", resp.Status, body)
	}
	root := strings.TrimSuffix(s.URL, path)
	if resp, _ := do(t, "GET", root+"/", ""); resp.StatusCode != 302 || resp.Header.Get("Location") != path {
		t.Errorf("the root: %s", resp.Status)
	}
	if resp, _ := do(t, "POST", s.URL+"actions/disconnect", "anything"); resp.StatusCode < 400 {
		t.Errorf("an action without a token in the environment: %s", resp.Status)
	}
}

// TestNameOfInspect: the page answers under the name given to --inspect, and under no other.
func TestNameOfInspect(t *testing.T) {
	rt, device := program(t)
	page, err := pageAt("Ops.Example.com.:8080", rt, device, new(slog.LevelVar), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	for host, want := range map[string]int{
		"ops.example.com:8080": 200, "OPS.example.com.:8080": 200, "127.0.0.1:8080": 200,
		"example.com:8080": 403, "x.ops.example.com:8080": 403, "evil.example:8080": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+path+"ids", nil)
		w := httptest.NewRecorder()
		if page.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}

func TestActionsNeedTheToken(t *testing.T) {
	t.Setenv(Token, "0123456789abcdef")
	s := serve(t, "127.0.0.1:0")
	if _, body := do(t, "GET", s.URL+"actions", ""); !strings.Contains(body, `"captures": true`) {
		t.Errorf("the embedded device captures, but: %s", body)
	}
	// there is no identifier 1
	for token, want := range map[string]int{"": 403, "fedcba9876543210": 403, "0123456789abcdef": 404} {
		if resp, _ := do(t, "POST", s.URL+"actions/disconnect", token); resp.StatusCode != want {
			t.Errorf("with %q: %s, want %d", token, resp.Status, want)
		}
	}
}

// TestClose: an open page does not delay the end.
func TestClose(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	resp, err := http.Get(s.URL + "events?view=loops")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("a viewer sees %v, want an orderly end", err)
	}
}

func TestServeNothing(t *testing.T) {
	s, err := Serve("", nil, nil, nil)
	if err != nil || s.URL != "" || s.Close() != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestServeErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	rt, device := program(t)
	for _, addr := range []string{"127.0.0.1", taken.Addr().String()} {
		if _, err := Serve(addr, rt, device, nil); err == nil || !strings.HasPrefix(err.Error(), "--inspect: ") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	t.Setenv(Token, "short")
	if _, err := Serve("127.0.0.1:0", rt, device, nil); err == nil || !strings.Contains(err.Error(), "16 bytes") {
		t.Errorf("a short token: %v", err)
	}
}
