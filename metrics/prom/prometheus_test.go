//go:build prometheus

package prom

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/internal/program"
)

// These tests need Debian's package prometheus.

// promtool accepts the text of a scrape.
func TestPromtool(t *testing.T) {
	p := program.Start(t)
	server := httptest.NewServer(promhttp.HandlerFor(register(t, p), promhttp.HandlerOpts{}))
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(scrape(t, server))
	if says, err := check.CombinedOutput(); err != nil || len(says) > 0 {
		t.Errorf("%v: %s", err, says)
	}
}

// promtool accepts the rules, which name only metrics of a scrape.
func TestPromtoolRules(t *testing.T) {
	if says, err := exec.Command("promtool", "check", "rules", "--lint-fatal", "rules.yml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, says)
	}
	rules, err := os.ReadFile("rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`rdmactor_[a-z_]+`).FindAllString(string(rules), -1) {
		if !strings.Contains(string(table), "`"+name+"`") {
			t.Errorf("no metric has the name %s", name)
		}
	}
}

// Prometheus scrapes a running program, and answers queries.
func TestPrometheus(t *testing.T) {
	p := program.Start(t)
	server := httptest.NewServer(promhttp.HandlerFor(register(t, p), promhttp.HandlerOpts{}))
	defer server.Close()
	api := start(t, strings.TrimPrefix(server.URL, "http://"))
	var found []struct {
		Metric map[string]string
		Value  [2]any
	}
	query := func(q string) {
		found = nil // a reused slice keeps the old entries of its maps
		api.get(t, "query?query="+url.QueryEscape(q), &found)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if query(`rdmactor_loop_turns_total > 0`); len(found) == 2 {
			break
		}
	}
	if len(found) != 2 || found[0].Metric["loop"] == found[1].Metric["loop"] {
		t.Fatalf("the loops: %v", found)
	}
	named := 0 // a loop has a name with quotes, a new line, and invalid UTF-8
	for _, f := range found {
		if strings.HasPrefix(f.Metric["loop"], "a \"loop\"\ufffdof \\ \ufffd bytes~") {
			named++
		}
	}
	if named != 1 {
		t.Errorf("the loops are called %v", found)
	}
	const quantile = `histogram_quantile(0.99, sum by (le) (rdmactor_rpc_latency_seconds_bucket))`
	for q, want := range map[string]string{
		`sum(rdmactor_peer_received_messages_total)`:                fmt.Sprint(program.Messages),
		`sum(rdmactor_identifiers_state{state="listening"})`:        "2",
		`sum(rdmactor_connection_received_messages_total) > bool 0`: "1",
		`sum(rdmactor_listener_accepted_total)`:                     "2",
		`sum(rdmactor_rpc_started_calls_total{side="server"})`:      fmt.Sprint(program.Calls + 1),
		`sum(rdmactor_rpc_ended_calls_total{code="OK"})`:            fmt.Sprint(2 * program.Calls),
		`sum(rdmactor_rpc_ended_calls_total{code="UNKNOWN"})`:       "2",
		`sum(rdmactor_rpc_running_calls)`:                           "0",
		`sum(rdmactor_rpc_latency_seconds_count)`:                   fmt.Sprint(2 * (program.Calls + 1)),
		quantile + ` < bool 60`:                                     "1",
		quantile + ` > bool 0.000004`:                               "1",
		`max(rdmactor_loop_blocked)`:                                "0",
		`up`:                                                        "1",
	} {
		if query(q); len(found) != 1 || found[0].Value[1] != want {
			t.Errorf("%s: %v, want %s", q, found, want)
		}
	}
	var metadata map[string][]struct{ Type, Help string }
	api.get(t, "metadata", &metadata)
	for _, d := range metrics.Definitions() {
		name := d.Name()
		if d.Kind == metrics.Histogram {
			name += "_count"
		}
		if query(name); len(found) == 0 {
			t.Errorf("%s was not scraped", d.Name())
		}
		if m := metadata[d.Name()]; len(m) != 1 || m[0].Type != string(d.Kind) || m[0].Help != d.Help {
			t.Errorf("%s: %+v", d.Name(), m)
		}
	}
}

// prometheusAPI is the address of Prometheus' HTTP API.
type prometheusAPI string

func (a prometheusAPI) get(t *testing.T, path string, data any) {
	t.Helper()
	answer, err := http.Get(string(a) + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	// a query's result is one level down in its data
	var said struct {
		Status string
		Data   json.RawMessage
	}
	if err := json.Unmarshal(text, &said); err != nil || said.Status != "success" {
		t.Fatalf("%s: %v: %s", path, err, text)
	}
	if strings.HasPrefix(path, "query?") {
		var vector struct{ Result json.RawMessage }
		if err := json.Unmarshal(said.Data, &vector); err != nil {
			t.Fatal(err)
		}
		said.Data = vector.Result
	}
	if err := json.Unmarshal(said.Data, data); err != nil {
		t.Fatalf("%s: %v: %s", path, err, text)
	}
}

// start starts Prometheus, which scrapes target, and waits until it is ready.
func start(t *testing.T, target string) prometheusAPI {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := "scrape_configs:\n- job_name: program\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  metrics_path: /\n" +
		"  static_configs:\n  - targets: [\"" + target + "\"]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := proctest.FreeAddrs(t, 1)[0]
	var log strings.Builder
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("prometheus: %v\n%s", err, log.String())
		}
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + at + "/-/ready")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return prometheusAPI("http://" + at + "/api/v1/")
		}
	}
	t.Fatal("prometheus does not become ready")
	return ""
}
