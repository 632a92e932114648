package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
)

// Document has the results of a run, and describes the measurement and the machine.
type Document struct {
	CPU      string            `json:"cpu"`
	CPUs     int               `json:"cpus"`
	OS       string            `json:"os"`
	Go       string            `json:"go"`
	Modules  map[string]string `json:"modules"`
	Load     string            `json:"load_average_at_start"`
	TCP      string            `json:"tcp_congestion_control"`
	Security string            `json:"security"` // the security of connections, as text
	Settings
	Scenarios []Result `json:"scenarios"`

	compared []string // the order of Modules
}

// NewDocument makes a document that describes this machine, the settings, and the versions of the
// given modules that this program is built with.
func NewDocument(set Settings, modules ...string) *Document {
	if set.Quick {
		set.Rounds, set.Run = 1, 30*time.Millisecond
	}
	d := &Document{
		CPU: stats.ProcField("/proc/cpuinfo", "model name"), CPUs: runtime.NumCPU(),
		OS: "Linux " + procWords("/proc/sys/kernel/osrelease")[0], Go: runtime.Version(), Modules: make(map[string]string),
		Load: strings.Join(procWords("/proc/loadavg")[:3], " "), TCP: procWords("/proc/sys/net/ipv4/tcp_congestion_control")[0],
		Security: "no TLS", Settings: set, compared: modules,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(modules, m.Path) {
				d.Modules[m.Path] = m.Version
			}
		}
	}
	return d
}

// procWords returns the words of a file in /proc. There are at least three.
func procWords(file string) []string {
	b, err := os.ReadFile(file)
	w := strings.Fields(string(b))
	if err != nil || len(w) == 0 {
		w = []string{"unknown"}
	}
	return append(w, "", "")
}

// idleLoad is the load average above which other programs are assumed to be running.
const idleLoad = 0.7

// Head describes the measurement and the machine.
func (d *Document) Head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d CPUs of an %s, %s (TCP: %s), %s, GOMAXPROCS=%d everywhere; load average at the start %s.\n",
		d.CPUs, d.CPU, d.OS, d.TCP, d.Go, d.Procs, d.Load)
	fmt.Fprintf(&b, "Two processes over loopback, %s, no CRC, nothing durable; %d interleaved rounds of %s each, medians.\n", d.Security, d.Rounds, d.Run)
	for i, name := range d.compared {
		sep := ","
		if i == 0 {
			sep = "Versions:"
		}
		fmt.Fprintf(&b, "%s %s %s", sep, name[strings.LastIndex(name, "/")+1:], d.Modules[name])
	}
	if len(d.compared) > 0 {
		b.WriteString(".\n")
	}
	if busy, _ := strconv.ParseFloat(strings.Fields(d.Load + " 0")[0], 64); busy > idleLoad {
		b.WriteString("\n**Other programs ran at the same time: the figures are unreliable, and the spread of the rounds shows how much.**\n")
	}
	if d.Quick {
		b.WriteString("\n**A quick run: that everything runs is all it says.**\n")
	}
	return b.String()
}

// Verdicts returns a table of the bars.
func (d *Document) Verdicts() string {
	var b strings.Builder
	b.WriteString("\n## Bars\n\n| what | aim | got | rounds | |\n|---|---|---:|---|---|\n")
	for _, r := range d.Scenarios {
		for _, x := range r.Bars {
			x.writeLine(&b)
		}
	}
	return b.String()
}

// Leave writes the files name.json and name.md to dir. The latter begins with head.
func (d *Document) Leave(dir, name, head string) error {
	js, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	md := head + d.Head() + d.Verdicts()
	for _, r := range d.Scenarios {
		md += r.Markdown()
	}
	return errors.Join(
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, name+".json"), append(js, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, name+".md"), []byte(md), 0o644),
	)
}
