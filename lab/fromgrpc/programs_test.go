package fromgrpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/certtest"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/internal/shop"
	"github.com/rdmactor/rdmactor/lab/fromgrpc/shopgrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }

// Both programs do the same: three servers with TLS, a client that calls them in turn, curl,
// metrics.
func TestPrograms(t *testing.T) {
	ours, theirs := &orders{all: make(map[int64]*shop.Order)}, &grpcOrders{all: make(map[int64]*shopgrpc.Order)}
	for name, p := range map[string]struct {
		serve  func(ctx context.Context, addr, web string, certificates *tls.Config) error
		use    func(ctx context.Context, addrs []string, certificates *tls.Config) ([]string, error)
		metric string
	}{
		"rdmactor": {
			func(ctx context.Context, addr, web string, c *tls.Config) error {
				return serveOrders(ctx, ours, addr, web, c)
			},
			callServers, "rdmactor_rpc_started_calls_total",
		},
		"grpc-go": {
			func(ctx context.Context, addr, web string, c *tls.Config) error {
				return grpcServe(ctx, theirs, addr, web, c)
			},
			grpcUse, "grpc_server_handled_total",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			authority := certtest.New(t)
			certificates := &tls.Config{
				Certificates: []tls.Certificate{authority.Of(t, "spiffe://shop/orders", "127.0.0.1")}, RootCAs: authority.Pool(),
				ClientCAs: authority.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
			}
			addrs, webs := free(t, 3), free(t, 3)
			ended := make(chan error, 3)
			for i := range addrs {
				go func() { ended <- p.serve(ctx, addrs[i], webs[i], certificates) }()
				get(t, "http://"+webs[i]+"/metrics")
			}
			items, err := p.use(ctx, addrs, certificates)
			if want := []string{"item 0", "item 1", "item 2"}; err != nil || !slices.Equal(items, want) {
				t.Errorf("got %v, %v", items, err)
			}
			q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+webs[0]+"/shop.v1.Orders/Get", strings.NewReader(`{"number": 1}`))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Content-Type", "application/json")
			q.Header.Set("Connect-Protocol-Version", "1") // vanguard's transcoder needs it
			r, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil || !strings.Contains(string(body), `"item 1"`) {
				t.Errorf("curl gets %d %s, %v", r.StatusCode, body, err)
			}
			r.Body.Close()
			if got := get(t, "http://"+webs[0]+"/metrics"); !strings.Contains(got, p.metric) {
				t.Errorf("no %s in\n%s", p.metric, got)
			}
			http.DefaultClient.CloseIdleConnections()
			cancel()
			for range addrs {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// free returns addresses without a listener.
func free(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// get returns a page when it is there.
func get(t *testing.T, url string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := http.Get(url)
		if err == nil {
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// docs/from-grpc.md states the lengths of both programs.
func TestDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/from-grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rdmactor.go", "grpcgo.go"} {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		stated := fmt.Sprintf("(../lab/fromgrpc/%s) in %d lines", name, strings.Count(string(code), "\n"))
		if !strings.Contains(strings.Join(strings.Fields(string(document)), " "), stated) {
			t.Errorf("docs/from-grpc.md does not state %q", stated)
		}
	}
}
