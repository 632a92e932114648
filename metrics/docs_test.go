package metrics

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

const docsPath = "../docs/metrics.md"

// TestDocs compares docs/metrics.md with the definitions.
func TestDocs(t *testing.T) {
	want := docs()
	if *update {
		if err := os.WriteFile(docsPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsPath)
	if err != nil || string(got) != want {
		t.Errorf("%s is stale: go test ./metrics -run Docs -update (%v)", docsPath, err)
	}
}

func docs() string {
	var b strings.Builder
	b.WriteString(`# Metrics

Generated from package metrics by ` + "`go test ./metrics -run Docs -update`" + `; do not edit.

Prometheus scrapes them through the module ` + "`metrics/prom`" + `, OpenTelemetry collects them through ` + "`metrics/otel`" + `:

` + "```go" + `
registry.MustRegister(prom.New(metrics.New(metrics.Config{
	Runtime: rt,
	Node:    node,
	Cluster: member.Counts, // of remoting/pacluster
	Servers: func() []*rpc.Server { return []*rpc.Server{server} },
	Clients: func() []*rpc.Client { return []*rpc.Client{client} },
})))
http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
` + "```" + `

A nil field of Config has no series.

- A scrape asks each loop once. A loop that is blocked for more than 100 ms is reported as it answered last, and
  ` + "`rdmactor_loop_blocked`" + ` is 1. Concurrent scrapes share an answer.
- Labels are bounded: the first ` + "`metrics.Config.Peers`" + ` (0) peers, ` + "`Listeners`" + ` (64) and ` + "`Methods`" + ` (64) have their own,
  the rest is "other"; peers without labels are "all". Identifiers and identities have no series: the page,
  ` + "`rdmactor ids`" + ` and the log show them.
- Texts from peers become valid UTF-8 without control characters, of at most 96 bytes; a changed text ends with a hash.
- Closed connections stay in the sums. So no counter decreases, except that of a peer with its own label that was forgotten
  and returned.
- A histogram's buckets are 4.096 µs and its doublings up to 137 s: ` + "`_bucket`" + `, ` + "`_sum`" + `, ` + "`_count`" + ` to Prometheus.
  ` + "`metrics/otel/histograms`" + ` passes them to a reader of OpenTelemetry's SDK (` + "`metric.WithProducer`" + `).
- Proto.Actor's own metrics stay off: they raise the cost of a message from 1 µs to between 9 and 16.
- The table has Prometheus's names. OpenTelemetry's have no suffix for the unit, nor "_total", and two dots:
  ` + "`rdmactor_connection_sent_bytes_total`" + ` is ` + "`rdmactor.connection.sent`" + ` in By. Metrics without a unit in their name are
  in {count}.

Names with "_total" are counters, ` + "`rdmactor_rpc_latency_seconds`" + ` is a histogram, and all others are gauges.

| name | labels | what it is |
|---|---|---|
`)
	for _, d := range Definitions() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name(), strings.Join(d.Labels, ", "), d.Help)
	}
	return b.String()
}

// Names follow the conventions, and no two metrics share one.
func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, d := range Definitions() {
		for _, name := range []string{d.Name(), d.Instrument()} {
			if seen[name+string(d.Unit)] || !regexp.MustCompile(`^rdmactor[._][a-z][a-z_.]*[a-z]$`).MatchString(name) {
				t.Errorf("%s: twice, or not a name", name)
			}
			seen[name+string(d.Unit)] = true
		}
		if (len(d.Labels) == 0) != (d.area == "cluster") || !strings.HasSuffix(d.Help, ".") || strings.Contains(d.Help, "|") {
			t.Errorf("%s: %q, %q", d.Name(), d.Labels, d.Help)
		}
		stem := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(d.Name(), "_total"), "_seconds"), "_bytes")
		if strings.Replace(stem, "_", ".", 2) != d.Instrument() {
			t.Errorf("%s is %s, not as the page says", d.Name(), d.Instrument())
		}
		if strings.HasSuffix(d.Name(), "_total") != (d.Kind == Counter) {
			t.Errorf("%s is a %v", d.Name(), d.Kind)
		}
		if (d.Name() == "rdmactor_rpc_latency_seconds") != (d.Kind == Histogram) {
			t.Errorf("%s is a %v, not as the page says", d.Name(), d.Kind)
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d names", len(seen))
	}
}
