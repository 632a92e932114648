package timing

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func sample() Run {
	r := Run{IDs: 4, Connect: true, Errors: 1}
	us := func(list ...int) (out []time.Duration) {
		for _, n := range list {
			out = append(out, time.Duration(n)*time.Microsecond)
		}
		return out
	}
	r.addRow(createID, 100*time.Microsecond, us(30, 20, 25, 25))
	r.addRow(connect, 2*time.Millisecond, us(1900, 500, 700))
	r.insertRow(createQP, connect, us(40, 60))
	r.addRow(destroy, 0, nil)
	return r
}

// TestTable: the columns and rows are those of rdma-core 44's cmtime.
func TestTable(t *testing.T) {
	const want = `4 connections
step              total ms     max ms     min us  us / conn
create id    :        0.10       0.03      20.00      25.00
create qp    :        0.10       0.06      40.00      25.00
connect      :        2.00       1.90     500.00     500.00
destroy      :        0.00       0.00       0.00       0.00
all          :        2.10                           525.00
(create qp is part of connect)
errors: 1

`
	r := sample()
	var out bytes.Buffer
	r.Table(&out)
	if out.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", &out, want)
	}
	out.Reset()
	r = Run{IDs: 1}
	r.Table(&out)
	if want := "1 identifier, not connected\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("the table is %q, want %q first", &out, want)
	}
	out.Reset()
	r = sample()
	r.Errors = r.IDs // the times until a failure are not a measurement
	r.Table(&out)
	if want := "4 connections\nerrors: 4\n\n"; out.String() != want {
		t.Errorf("if all have failed the table is %q, want %q", &out, want)
	}
}

// TestSchema: programs read these names.
func TestSchema(t *testing.T) {
	n := 4
	r := Report{Device: "iwarp", Level: "actor", Served: &n, Runs: []Run{sample()}, First: "why"}
	var out bytes.Buffer
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	check := func(what string, m map[string]any, want ...string) {
		if got := slices.Sorted(maps.Keys(m)); !slices.Equal(got, want) {
			t.Errorf("%s has the fields %q, want %q", what, got, want)
		}
	}
	check("the document", doc, "device", "errors", "first_error", "level", "local", "runs", "served", "server")
	run := doc["runs"].([]any)[0].(map[string]any)
	check("a run", run, "connect", "errors", "ids", "steps", "total_ms")
	list := run["steps"].([]any)
	check("a step", list[0].(map[string]any), "max_ms", "min_us", "p50_us", "p99_us", "step", "total_ms", "us_per_conn")
	check("a step inside another", list[1].(map[string]any), "inside", "max_ms", "min_us", "p50_us", "p99_us", "step", "total_ms", "us_per_conn")
	if run["total_ms"] != 2.1 {
		t.Errorf("total_ms is %v, want 2.1: what is inside another step counts once", run["total_ms"])
	}
}
