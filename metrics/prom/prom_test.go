package prom

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/internal/program"
)

// register registers the program's metrics with a registry that rejects inconsistent ones.
func register(t *testing.T, p *program.Program) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(New(p.Source)); err != nil {
		t.Fatal(err)
	}
	return registry
}

// gathered returns the values of a scrape, by name and labels.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			values[fmt.Sprint(f.GetName(), labels)] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return values
}

// A scrape contains every defined metric, with the source's values.
func TestScrape(t *testing.T) {
	p := program.Start(t)
	registry := register(t, p)
	gathered(t, registry)
	p.Shutdown()
	got, want := gathered(t, registry), make(map[string]float64)

	for _, s := range p.Source.Read(context.Background()) {
		labels := make(map[string]string)
		for i, name := range s.Labels {
			labels[name] = s.Values[i]
		}
		want[fmt.Sprint(s.Name(), labels)] = s.Value
		if s.Kind == metrics.Histogram {
			want[fmt.Sprint(s.Name(), labels)] = s.Histogram.Sum().Seconds()
		}
	}
	if len(got) != len(want) || len(got) < 100 {
		t.Errorf("%d series, want %d", len(got), len(want))
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v && !strings.HasPrefix(name, "rdmactor_read_duration_seconds") {
			t.Errorf("%s = %v, %v; want %v", name, g, ok, v)
		}
	}
	seen := make(map[*metrics.Definition]bool)
	live := program.Start(t)
	for _, s := range live.Source.Read(context.Background()) {
		seen[s.Definition] = true
	}
	for _, d := range metrics.Definitions() {
		if !seen[d] {
			t.Errorf("%s is not in a scrape", d.Name())
		}
	}
}

// A program may end while several clients scrape it.
func TestScrapedAtTheEnd(t *testing.T) {
	p := program.Start(t)
	server := httptest.NewServer(promhttp.HandlerFor(register(t, p), promhttp.HandlerOpts{}))
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if text := scrape(t, server); !strings.Contains(text, "rdmactor_loop_turns_total") {
					t.Errorf("a scrape has %q", text)
				}
			}
		})
	}
	p.Shutdown()
	all.Wait()
}

func scrape(t *testing.T, server *httptest.Server) string {
	answer, err := server.Client().Get(server.URL)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%s, %v: %s", answer.Status, err, text)
	}
	return string(text)
}

// A label distinguishes two runtimes of a process; without one the second is refused.
func TestTwoRuntimes(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	one, two := program.Start(t), program.Start(t)
	for name, p := range map[string]*program.Program{"one": one, "two": two} {
		if err := prometheus.WrapRegistererWith(prometheus.Labels{"runtime": name}, registry).Register(New(p.Source)); err != nil {
			t.Fatal(err)
		}
		if err := prometheus.WrapRegistererWith(prometheus.Labels{"runtime": name}, registry).Register(New(two.Source)); err == nil {
			t.Error("registered twice")
		}
	}
	got := gathered(t, registry)
	for _, name := range []string{"one", "two"} {
		if key := fmt.Sprint("rdmactor_loop_blocked", map[string]string{"loop": "second", "runtime": name}); got[key] != 0 || len(got) < 200 {
			t.Errorf("%s: %v of %d", key, got[key], len(got))
		} else if _, ok := got[key]; !ok {
			t.Errorf("%s is not there", key)
		}
	}
}
