package measure

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
)

func TestJudge(t *testing.T) {
	entries := []Measured{
		{Name: "a", Rounds: []Metrics{{P50: 1, P99: 4}, {P50: 3, P99: 8}, {P50: 2, P99: 6}}},
		{Name: "b", Rounds: []Metrics{{P50: 4}, {P50: 4}, {P50: 8}}},
		{Name: "absent"},
	}
	for _, c := range []struct {
		bar              Bar
		paired           bool
		got, least, most float64
		pass             bool
	}{
		{Bar{Metric: P50, Entry: "a", Base: "b", Most: 0.5}, false, 0.5, 0.25, 0.75, true},
		{Bar{Metric: P50, Entry: "a", Base: "b", Most: 0.4}, false, 0.5, 0.25, 0.75, false},
		{Bar{Metric: P50, Entry: "a", Base: "b", Least: 0.6}, false, 0.5, 0.25, 0.75, false},
		{Bar{Metric: P50, Entry: "b", Base: "a", Least: 2}, false, 2, 4.0 / 3, 4, true},
		{Bar{Metric: P50, Entry: "a", Base: "b", Most: 0.2}, true, 0.25, 0.25, 0.75, false},
		{Bar{Metric: P50, Entry: "a", Base: "b", Most: 0.3}, true, 0.25, 0.25, 0.75, true},
		{Bar{Metric: P99, Entry: "a", OfItself: P50, Most: 2}, false, 3, 8.0 / 3, 4, false},
		{Bar{Metric: P99, Entry: "a", Most: 6}, false, 6, 4, 8, true},
		{Bar{Metric: P99, Entry: "a", Most: 5.9, Slack: 0.2}, true, 6, 4, 8, true},
	} {
		r := Result{Entries: entries, paired: c.paired}
		got, ok := r.judgeBar(c.bar)
		near := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
		if !ok || !near(got.Got, c.got) || !near(got.Least, c.least) || !near(got.Most, c.most) || got.Pass != c.pass {
			t.Errorf("%+v: %+v, want %v (%v to %v), pass %t", c.bar, got, c.got, c.least, c.most, c.pass)
		}
	}
	r := Result{Entries: entries}
	for _, b := range []Bar{{Entry: "absent"}, {Entry: "nobody"}, {Entry: "a", Base: "absent"}} {
		if _, ok := r.judgeBar(b); ok {
			t.Errorf("%+v was judged without figures", b)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []Scenario{
		{Name: "calls", Entries: []Entry{{Contestant: "rpc"}, {Contestant: "grpc-go"}, {Contestant: "net/rpc"}}},
		{Name: "echo"},
	}
	got, err := Choose(all, "calls", "rpc,grpc-go")
	if err != nil || len(got) != 1 || len(got[0].Entries) != 2 {
		t.Errorf("%+v, %v; want calls with two entries", got, err)
	}
	if got, err := Choose(all, "echo,calls", ""); err != nil || len(got) != 2 || len(got[1].Entries) != 3 {
		t.Errorf("%+v, %v; want both whole", got, err)
	}
	if got, err := Choose(all, "", ""); err != nil || len(got) != 2 {
		t.Errorf("%+v, %v; want all", got, err)
	}
	if _, err := Choose(all, "dance", ""); err == nil || !strings.Contains(err.Error(), `"dance"`) {
		t.Errorf("a scenario that is not there: %v", err)
	}
}

func TestCheck(t *testing.T) {
	s := Scenario{Name: "s", Entries: []Entry{{Contestant: "a"}, {Contestant: "b", Loops: 2}}}
	s.Bars = []Bar{{Entry: "a"}, {Entry: "b loops=2", Base: "a"}, {Entry: "a", Base: "a", Plus: "b loops=2"}}
	if err := Check([]Scenario{s}); err != nil {
		t.Errorf("there is nothing wrong with it: %v", err)
	}
	if err := Check([]Scenario{s, s}); err == nil {
		t.Error("two scenarios of one name are one too many")
	}
	for _, b := range []Bar{{}, {Entry: "c"}, {Entry: "a", Base: "c"}, {Entry: "a", Base: "a", Plus: "c"}} {
		s.Bars = []Bar{b}
		if err := Check([]Scenario{s}); err == nil {
			t.Errorf("%+v is nobody's", b)
		}
	}
}

// TestPlus: an entry is compared with the sum of two others.
func TestPlus(t *testing.T) {
	s := Scenario{Name: "s", Entries: []Entry{{Contestant: "a"}, {Contestant: "b"}, {Contestant: "c"}}, Paired: true}
	b := Bar{Metric: MicrosPer, Entry: "a", Base: "b", Plus: "c", Most: 1.2}
	r := newResult(s)
	for i, x := range [][]float64{{6, 12, 18}, {2, 4, 6}, {3, 4}} {
		for _, v := range x {
			r.Entries[i].Rounds = append(r.Entries[i].Rounds, Metrics{MicrosPer: v})
		}
	}
	if v, ok := r.judgeBar(b); !ok || v.Got != 1.35 || v.Least != 1.2 || v.Most != 1.5 || v.Pass {
		t.Errorf("%+v, %v: want 6 of 5 and 12 of 8, which is too much", v, ok)
	}
	r.Entries[2].Rounds = nil
	if v, ok := r.judgeBar(b); ok {
		t.Errorf("%+v, though one was not measured", v)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0.123: "0.12", 9.87: "9.87", 12.34: "12.3", 123.4: "123", 1234: "1,234", 1234567: "1,234,567"} {
		if got := Number(x); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
}

// TestTimes: a time out of bounds counts as the bound.
func TestTimes(t *testing.T) {
	times := stats.NewTimes(3)
	for _, d := range []time.Duration{0, -1, 100 * time.Microsecond, time.Hour} {
		times.Add(d)
	}
	if n := times.TotalCount(); n != 4 {
		t.Errorf("%d times are counted, want 4", n)
	}
	if p := Percentiles(times); math.Abs(p[P99]-stats.Micros(stats.Longest)) > stats.Micros(stats.Longest)/1000 || p[P50] > 1 {
		t.Errorf("%v: want the stats.Longest at the end, and the least in the middle", p)
	}
}

// TestReport: the reports of the two sides become metrics.
func TestReport(t *testing.T) {
	r := report{
		Sample{N: 10, Seconds: 2, Bytes: 4 << 20, Times: Metrics{P50: 7}, More: Metrics{Connections: 5, "own": 1}},
		usage{CPU: 20 * time.Microsecond, Mallocs: 30, Goroutines: 3},
	}
	server := usage{CPU: 50 * time.Microsecond, Mallocs: 20, Goroutines: 2, More: Metrics{"its": 2}}
	got := r.newMetrics(server.since(usage{CPU: 10 * time.Microsecond, Mallocs: 10, Goroutines: 9, More: Metrics{"its": 1}}))
	for name, want := range (Metrics{
		PerSecond: 5, MicrosPer: 200_000, MiBPerS: 2, CPUPer: 6, ServerCPUPer: 4, ClientCPUPer: 2, ServerCPUs: 20e-6, ClientCPUs: 10e-6, AllocsPer: 4,
		ServerGoroutines: 2, ClientGoroutines: 3, Connections: 5, P50: 7, "own": 1, "its": 2,
	}) {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestMarkdown: tables have a line for each entry and each bar; failures are below.
func TestMarkdown(t *testing.T) {
	s := Scenario{
		Name: "s", Title: "A title", Note: "A note.", On: OwnCPU, Columns: []string{P50, P99}, Base: "b",
		Entries: []Entry{{Contestant: "a", Ours: true}, {Contestant: "b"}, {Contestant: "c"}},
		Bars:    Bar{What: "%s against b", Metric: P50, Base: "b", Most: 0.4}.Of("a"),
	}
	r := newResult(s)
	r.Entries[0].Rounds = []Metrics{{P50: 1, P99: 1234}}
	r.Entries[1].Rounds = []Metrics{{P50: 2, P99: 20}}
	for _, b := range s.Bars {
		v, _ := r.judgeBar(b)
		r.Bars = append(r.Bars, v)
	}
	r.Failures = []string{errors.New("c: no").Error()}
	const want = `
### A title

One CPU for each process. A note.

| | p50 us | p99 us | p50 us, of b |
|---|---:|---:|---:|
| **a** | 1.00 | 1,234 | 0.50 (0.50–0.50) |
| b | 2.00 | 20.0 | 1.00 |
| c | failed | failed | |

Failed: c: no
`
	if got := r.Markdown(); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
	const bars = `
## Bars

| what | aim | got | rounds | |
|---|---|---:|---|---|
| a against b | <= 0.4 | 0.50 | 0.50–0.50 | **missed** |
`
	d := Document{Scenarios: []Result{r}}
	if got := d.Verdicts(); got != bars {
		t.Errorf("the bars are\n%s\nwant\n%s", got, bars)
	}
}
