package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/lab/live"
	"github.com/rdmactor/rdmactor/metrics"
)

func TestMain(m *testing.M) {
	if err := os.Setenv(live.Token, secret); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}

const (
	patience = 3 * time.Minute // on a busy machine
	secret   = "a token of a test"
)

// screen is the output of a program.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// program is an incident that runs until the test ends.
type program struct {
	*testing.T
	url      string
	out, log *screen
	source   *metrics.Source // of the server
	stage    *stage
}

// row is a row of the page's JSON.
type row map[string]any

func (r row) number(name string) float64 {
	n, ok := r[name].(float64)
	if !ok {
		panic("the page has no number " + name)
	}
	return n
}

func (r row) text(name string) string {
	s, ok := r[name].(string)
	if !ok {
		panic("the page has no text " + name)
	}
	return s
}

// begin plays an incident as its command does.
func begin(t *testing.T, args ...string) *program {
	t.Helper()
	t.Parallel()
	p := &program{T: t, out: &screen{}, log: &screen{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	set, err := parseFlags(args, p.out)
	if err != nil {
		t.Fatal(err)
	}
	set.begun = func(s *stage) { p.stage, p.source = s, metrics.New(metrics.Config{Runtime: s.server}) }
	go func() { ended <- set.runIncident(ctx, p.out, p.log) }()
	t.Cleanup(func() {
		cancel() // Ctrl-C
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s\n%s", p.out, p.log)
		}
	})
	p.until("it has a page", func() bool { return strings.Contains(p.out.String(), "/debug/rdma/\n") })
	_, url, _ := strings.Cut(p.out.String(), "page is at ")
	p.url, _, _ = strings.Cut(url, "\n")
	p.until("trouble begins", func() bool { return strings.Contains(p.out.String(), "-- for ") })
	return p
}

func (p *program) until(what string, is func() bool) {
	p.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("never: %s", what)
		}
	}
}

func (p *program) do(method, path, body string, to any) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil || resp.StatusCode != http.StatusOK {
		p.Fatalf("%s: %s %v", path, resp.Status, err)
	}
}

func (p *program) rows(path string) []row {
	p.Helper()
	var table struct{ Rows []row }
	p.do(http.MethodGet, path, "", &table)
	return table.Rows
}

// clients returns the rows of the clients, by name.
func (p *program) clients() map[string]row {
	p.Helper()
	all := make(map[string]row)
	for _, r := range p.rows("sections/clients") {
		all[r.text("client")] = r
	}
	return all
}

// identifier returns the row of a client's identifier; nil: none.
func (p *program) identifier(client string) row {
	p.Helper()
	id := p.clients()[client].number("identifier")
	for _, r := range p.rows("ids") {
		if r.number("id") == id {
			return r
		}
	}
	return nil
}

// goOn checks that all these clients receive more messages, over their existing connections.
func (p *program) goOn(names ...string) {
	p.Helper()
	before := p.clients()
	for _, name := range names {
		p.until(name+" goes on", func() bool {
			now := p.clients()[name]
			if now.number("identifier") != before[name].number("identifier") {
				p.Fatalf("%s has lost its connection", name)
			}
			return now.number("got_messages") >= before[name].number("got_messages")+50
		})
	}
}

// logs waits for a line of the log that contains all these texts.
func (p *program) logs(texts ...string) {
	p.Helper()
	p.until("the log has "+strings.Join(texts, ", "), func() bool {
		for line := range strings.Lines(p.log.String()) {
			has := true
			for _, text := range texts {
				has = has && strings.Contains(line, text)
			}
			if has {
				return true
			}
		}
		return false
	})
}

// measures waits until one of a metric's series has a value that is accepts.
func (p *program) measures(name string, is func(v float64) bool) {
	p.Helper()
	p.until("the metric "+name, func() bool {
		for _, s := range p.source.Read(p.Context()) {
			if s.Name() == name && is(s.Value) {
				return true
			}
		}
		return false
	})
}

func positive(v float64) bool { return v > 0 }
