package rpchttp

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/orders"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
)

type text = wrapperspb.StringValue

var errSoldOut = rpc.RegisterCode(7001, "sold out")

// serve starts an rpc server of test.Orders, and a web server with a Handler of it.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(rt)
	handle(s)
	at, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := rpc.NewClient(rt, at.String())
	h, err := New(c, Config{MaxMessage: 32 << 10, Code: func(code rpc.Code) string {
		if code == 7001 {
			return "failed_precondition"
		}
		return ""
	}}, "test.Orders")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(h)
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(func() {
		web.Client().CloseIdleConnections()
		web.Close()
		c.Close()
		s.Close()
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters expires
	})
	return web
}

func handle(s *rpc.Server) {
	rpc.Handle(s, orders.Get, func(ctx context.Context, q *text) (*text, error) {
		switch q.Value {
		case "sold out":
			return nil, errSoldOut
		case "slow":
			<-ctx.Done()
			return nil, ctx.Err()
		case "panic":
			panic("of a handler")
		}
		who, _ := rpc.Metadata(ctx, "authorization")
		return wrapperspb.String(q.Value + who), rpc.SetHeader(ctx, "Shop", "open")
	})
	rpc.HandleStream(s, orders.Watch, func(_ context.Context, q *text, out *rpc.Sender[text]) error {
		for _, item := range strings.Fields(q.Value) {
			if item == "sold-out" {
				return errSoldOut
			}
			if err := out.Send(wrapperspb.String(item)); err != nil {
				return err
			}
		}
		return nil
	})
	rpc.HandleClientStream(s, orders.Put, func(_ context.Context, in *rpc.Receiver[text]) (*text, error) {
		var all []string
		for item, err := range in.All() {
			if err != nil {
				return nil, err
			}
			if item.Value == "sold out" {
				return nil, errSoldOut
			}
			all = append(all, item.Value)
		}
		return wrapperspb.String(strings.Join(all, "+")), nil
	})
	rpc.HandleBidiStream(s, orders.Talk, func(_ context.Context, in *rpc.Receiver[text], out *rpc.Sender[text]) error {
		for item, err := range in.All() {
			if err != nil {
				return err
			}
			if err := out.Send(wrapperspb.String("re: " + item.Value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// post makes a request, and returns the answer.
func post(t *testing.T, web *httptest.Server, path, contentType, body string, headers ...string) (status int, header http.Header, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, a.Header, string(b)
}

// What curl and browsers send as JSON is answered as JSON; errors have Connect's codes.
func TestUnary(t *testing.T) {
	web := serve(t)
	for name, tt := range map[string]struct {
		body    string
		headers []string
		status  int
		want    string
	}{
		"an answer":            {`"tea"`, nil, 200, `"tea"`},
		"with metadata":        {`"tea "`, []string{"Authorization", "ann", "Sec-Fetch-Mode", "cors"}, 200, `"tea ann"`},
		"no JSON":              {`tea"`, nil, 400, `"code":"invalid_argument"`},
		"a service's code":     {`"sold out"`, nil, 400, `"code":"failed_precondition"`},
		"a panic":              {`"panic"`, nil, 500, `"code":"internal"`},
		"a deadline":           {`"slow"`, []string{"Connect-Timeout-Ms", "20"}, 504, `"code":"deadline_exceeded"`},
		"no time-out":          {`"tea"`, []string{"Connect-Timeout-Ms", "-1"}, 400, `"code":"invalid_argument"`},
		"compressed":           {`"tea"`, []string{"Content-Encoding", "gzip"}, 501, `"code":"unimplemented"`},
		"too large":            {`"` + strings.Repeat("x", 33<<10) + `"`, nil, 429, `"code":"resource_exhausted"`},
		"too much metadata":    {`"tea"`, []string{"X-Long", strings.Repeat("x", 9<<10)}, 429, `"code":"resource_exhausted"`},
		"an empty body":        {``, nil, 200, `""`},
		"with another charset": {`"tea"`, []string{"Content-Type", "application/json; charset=utf-8"}, 200, `"tea"`},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, got := post(t, web, "/test.Orders/Get", "application/json", tt.body, tt.headers...)
			if status != tt.status || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s, want %d %s", status, got, tt.status, tt.want)
			}
			if status == 200 && header.Get("Shop") != "open" {
				t.Errorf("the answer's metadata are missing: %v", header)
			}
		})
	}
}

// Protobuf's bytes pass as they are. Other paths, methods and types have HTTP's own answers.
func TestHTTP(t *testing.T) {
	web := serve(t)
	status, header, got := post(t, web, "/test.Orders/Get", "application/proto", "\x0a\x03tea")
	if status != 200 || got != "\x0a\x03tea" || header.Get("Content-Type") != "application/proto" {
		t.Errorf("got %d %q %v", status, got, header)
	}
	if status, _, _ := post(t, web, "/test.Orders/Nothing", "application/json", ""); status != 404 {
		t.Errorf("an unknown method: %d", status)
	}
	for _, content := range []string{"text/plain", "application/connect+json", "json", ""} {
		if status, _, _ := post(t, web, "/test.Orders/Get", content, `"tea"`); status != 415 {
			t.Errorf("%q: %d", content, status)
		}
	}
	a, err := web.Client().Get(web.URL + "/test.Orders/Get")
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != 405 || a.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d, %v", a.StatusCode, a.Header)
	}
}

// enveloped returns the items of a stream.
func enveloped(items ...string) string {
	var b []byte
	for _, i := range items {
		b = binary.BigEndian.AppendUint32(append(b, 0), uint32(len(i)))
		b = append(b, i...)
	}
	return string(b)
}

// opened returns the items of an answer, the end last.
func opened(t *testing.T, answer string) (items []string) {
	t.Helper()
	for b := []byte(answer); len(b) > 0; {
		if len(b) < 5 || len(b) < 5+int(binary.BigEndian.Uint32(b[1:])) {
			t.Fatalf("the answer ends within an item: %q", b)
		}
		n := 5 + int(binary.BigEndian.Uint32(b[1:]))
		if end := b[0] == 2; end != (n == len(b)) {
			t.Errorf("the flags of %q are %#x", b[5:n], b[0])
		}
		items = append(items, string(b[5:n]))
		b = b[n:]
	}
	return items
}

// Streams of all kinds carry their items in order, and end with what the handler has returned.
func TestStreams(t *testing.T) {
	web := serve(t)
	for name, tt := range map[string]struct{ method, body, want string }{
		"of the server":            {"Watch", enveloped(`"a b"`), `"a" "b" {}`},
		"of the server, an error":  {"Watch", enveloped(`"a sold-out"`), `"a" {"error":{"code":"failed_precondition"}}`},
		"of the server, nothing":   {"Watch", "", `{"error":{"code":"invalid_argument","message":"there is no request"}}`},
		"of the client":            {"Put", enveloped(`"a"`, `"b"`), `"a+b" {}`},
		"of the client, empty":     {"Put", "", `"" {}`},
		"both":                     {"Talk", enveloped(`"a"`, `"b"`), `"re: a" "re: b" {}`},
		"both, cut off":            {"Talk", enveloped(`"a"`) + "\x00\x00", `"re: a" {"error":{"code":"invalid_argument","message":"the stream ends within an item"}}`},
		"a length beyond the end":  {"Put", "\x00\x00\x00\x10\x00x", `{"error":{"code":"invalid_argument","message":"the stream ends within an item"}}`},
		"a length beyond the most": {"Put", "\x00\xff\xff\xff\xffx", `{"error":{"code":"resource_exhausted","message":"an item has 4294967295 bytes, the limit is 32768"}}`},
		"compressed":               {"Put", "\x01\x00\x00\x00\x01x", `{"error":{"code":"unimplemented","message":"compressed items are not supported"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, got := post(t, web, "/test.Orders/"+tt.method, "application/connect+json", tt.body)
			if status != 200 || header.Get("Content-Type") != "application/connect+json" {
				t.Errorf("got %d, %v", status, header)
			}
			all := strings.Join(opened(t, got), " ")
			if name == "both, cut off" { // the error may overtake the answer
				all, tt.want = strings.TrimPrefix(all, `"re: a" `), strings.TrimPrefix(tt.want, `"re: a" `)
			}
			if all != tt.want {
				t.Errorf("got %s, want %s", all, tt.want)
			}
		})
	}
}

// Over HTTP/2 both sides of a stream talk while it is open. A client that goes ends it.
func TestDialog(t *testing.T) {
	web := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, out := io.Pipe()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL+"/test.Orders/Talk", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/connect+json")
	go func() { _, _ = io.WriteString(out, enveloped(`"0"`)) }()
	a, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	for _, want := range []string{`"re: 0"`, `"re: 1"`} {
		got := make([]byte, 5+len(want))
		if _, err := io.ReadFull(a.Body, got); err != nil || !bytes.HasSuffix(got, []byte(want)) {
			t.Fatalf("got %q, %v", got, err)
		}
		if want == `"re: 0"` {
			_, _ = io.WriteString(out, enveloped(`"1"`))
		}
	}
	_ = out.CloseWithError(io.ErrClosedPipe) // net/http's client sees the end of ctx only then
	cancel()
	if _, err := io.ReadAll(a.Body); err == nil {
		t.Error("the stream has ended in order")
	}
}

// A server that ends a client's stream early is heard while the client sends nothing.
func TestEarlyEnd(t *testing.T) {
	web := serve(t)
	body, out := io.Pipe()
	defer out.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/test.Orders/Put", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/connect+json")
	go func() { _, _ = io.WriteString(out, enveloped(`"sold out"`)) }() // fails if the test has
	a, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	const want = `{"error":{"code":"failed_precondition"}}`
	got := make([]byte, 5+len(want))
	if _, err := io.ReadFull(a.Body, got); err != nil || string(got[5:]) != want {
		t.Errorf("got %q, %v, want %s", got, err, want)
	}
}

// A Handler needs services that the program describes, and does not need their server.
func TestNew(t *testing.T) {
	if _, err := New(nil, Config{}, "test.Nothing"); err == nil {
		t.Error("it serves a service that there is not")
	}
	if _, err := New(nil, Config{}, "google.protobuf.StringValue"); err == nil {
		t.Error("it serves a message")
	}
}

// A client that sends a part of its request, and then nothing, is not waited for beyond its
// deadline.
func TestSilentClient(t *testing.T) {
	web := serve(t)
	for path, content := range map[string]string{"Get": "application/json", "Put": "application/connect+json", "Talk": "application/connect+json"} {
		t.Run(path, func(t *testing.T) {
			body, out := io.Pipe()
			defer out.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/test.Orders/"+path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", content)
			r.Header.Set("Connect-Timeout-Ms", "50")
			a, err := web.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			_ = out.Close()
			if b, err := io.ReadAll(a.Body); err != nil || !strings.Contains(string(b), "deadline_exceeded") {
				t.Errorf("%d %q, %v", a.StatusCode, b, err)
			}
		})
	}
}
