package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// document is the results of a run, and what they are of.
type document struct {
	CPU       string            `json:"cpu"`
	CPUs      int               `json:"cpus"`
	OS        string            `json:"os"`
	Go        string            `json:"go"`
	Procs     int               `json:"gomaxprocs"`
	Modules   map[string]string `json:"modules"`
	Rounds    int               `json:"rounds"`
	Run       string            `json:"run"`
	Quick     bool              `json:"quick"`
	Load      string            `json:"load_average_at_start"`
	TCP       string            `json:"tcp_congestion_control"`
	Scenarios []result          `json:"scenarios"`
}

// compared are the modules whose versions are told.
var compared = []string{
	"google.golang.org/grpc", "github.com/asynkron/protoactor-go", "github.com/cloudwego/netpoll", "google.golang.org/protobuf",
	"golang.org/x/sys",
}

func newDocument(set settings) *document {
	d := &document{
		CPU: procField("/proc/cpuinfo", "model name"), CPUs: runtime.NumCPU(), OS: "Linux " + words("/proc/sys/kernel/osrelease")[0], Go: runtime.Version(), Procs: procs,
		Modules: make(map[string]string), Rounds: set.rounds, Run: set.run.String(), Quick: set.quick,
	}
	d.Load = strings.Join(words("/proc/loadavg")[:3], " ")
	d.TCP = words("/proc/sys/net/ipv4/tcp_congestion_control")[0]
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			for _, name := range compared {
				if m.Path == name {
					d.Modules[name] = m.Version
				}
			}
		}
	}
	return d
}

// procField is the first value of a field of a file in /proc.
func procField(file, field string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == field {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// words are those of a file in /proc, three at least.
func words(file string) []string {
	b, err := os.ReadFile(file)
	w := strings.Fields(string(b))
	if err != nil || len(w) == 0 {
		w = []string{"unknown"}
	}
	return append(w, "", "")
}

// idleLoad is the load average above which a machine is not one's own.
const idleLoad = 0.7

// head says what was measured where.
func (d *document) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d CPUs of an %s, %s (TCP: %s), %s, GOMAXPROCS=%d everywhere; load average at the start %s.\n",
		d.CPUs, d.CPU, d.OS, d.TCP, d.Go, d.Procs, d.Load)
	fmt.Fprintf(&b, "Two processes over loopback, no TLS, no CRC, nothing durable; %d interleaved rounds of %s each, medians.\n", d.Rounds, d.Run)
	b.WriteString("Versions:")
	for i, name := range compared {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %s %s", name[strings.LastIndex(name, "/")+1:], d.Modules[name])
	}
	b.WriteString(".\n")
	if busy, _ := strconv.ParseFloat(strings.Fields(d.Load + " 0")[0], 64); busy > idleLoad {
		b.WriteString("\n**Other programs ran meanwhile: the figures say little, the spread of the rounds how little.**\n")
	}
	if d.Quick {
		b.WriteString("\n**A quick run: that everything runs is all it says.**\n")
	}
	return b.String()
}

// markdown is the scenario's table, with its bars below.
func (r *result) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n%s", r.Title, strings.ToUpper(r.CPUs[:1])+r.CPUs[1:]+".")
	if r.Note != "" {
		b.WriteString(" " + r.Note)
	}
	fmt.Fprintf(&b, "\n\n| | %s |", strings.Join(r.Columns, " | "))
	if r.Base != "" {
		fmt.Fprintf(&b, " %s, of %s |", r.Columns[0], r.Base)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(r.Columns)))
	if r.Base != "" {
		b.WriteString("---:|")
	}
	b.WriteString("\n")
	for _, e := range r.Entries {
		r.line(&b, e)
	}
	if len(r.Bars) > 0 {
		b.WriteString("\n| bar | aim | got | rounds | |\n|---|---|---:|---|---|\n")
	}
	for _, x := range r.Bars {
		x.line(&b)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\nFailed: %s\n", f)
	}
	return b.String()
}

func (r *result) line(b *strings.Builder, e measured) {
	name := e.Name
	if e.Ours {
		name = "**" + name + "**"
	}
	fmt.Fprintf(b, "| %s |", name)
	for _, c := range r.Columns {
		fmt.Fprintf(b, " %s |", number(e.median(c)))
	}
	if base := r.entry(r.Base); base != nil && len(e.Rounds) > 0 {
		of, least, most := ratio(&e, r.Columns[0], base, r.Columns[0])
		fmt.Fprintf(b, " %.2f (%.2f to %.2f) |", of, least, most)
	} else if r.Base != "" {
		b.WriteString(" |")
	}
	b.WriteString("\n")
}

// number has three significant digits, or no fraction.
func number(x float64) string {
	switch {
	case x >= 1000:
		return thousands(int64(x + 0.5))
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (x barResult) line(b *strings.Builder) {
	verdict := "**missed**"
	if x.Pass {
		verdict = "reached"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s to %s | %s |\n", x.What, x.Bar, number(x.Got), number(x.Least), number(x.Most), verdict)
}

// verdicts are all bars in one table.
func (d *document) verdicts() string {
	var b strings.Builder
	b.WriteString("\n## Bars\n\n| what | aim | got | rounds | |\n|---|---|---:|---|---|\n")
	for _, r := range d.Scenarios {
		for _, x := range r.Bars {
			x.line(&b)
		}
	}
	return b.String()
}

// leave writes the files.
func (d *document) leave(dir string) error {
	js, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	var md strings.Builder
	md.WriteString("<!-- written by `cd bench && go run . -o ../docs` -->\n\n" + d.head() + d.verdicts())
	for _, r := range d.Scenarios {
		md.WriteString(r.markdown())
	}
	return errors.Join(
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "bench.json"), append(js, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "bench.md"), []byte(md.String()), 0o644),
		d.chart(filepath.Join(dir, "bench.svg")),
	)
}
