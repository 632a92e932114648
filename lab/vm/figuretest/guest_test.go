//go:build vm

package figuretest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

// guest is the machine and the kind of device to use in it.
type guest struct {
	t    *testing.T
	m    *vm.Machine
	kind string
}

// with returns the guest for a subtest.
func (g *guest) with(t *testing.T) *guest { return &guest{t, g.m, g.kind} }

// limit is the time limit of one run. The slowest is cmtime against a server that must share its
// processors with the spinning cmtime.
const limit = 5 * time.Minute

// prelude starts every script. cmtime's server never ends, and refuses clients after the first. So
// each run has a separate server.
const prelude = `. /etc/%s.env
listening() { rdma resource show cm_id | grep -q 'state LISTEN .*:7471 '; }
await() { # whether it is listening or not
	i=0
	while { listening; [ $? != "$1" ]; }; do
		i=$((i + 1)); [ $i -lt 150 ] || { echo "server: no change in 30 s:"; cat /tmp/server.out; exit 1; }
		sleep 0.2
	done
}
serve() { "$@" >/tmp/server.out 2>&1 & srv=$!; trap 'kill -9 $srv' EXIT; await 0; }
unserve() { trap - EXIT; kill "$srv"; wait "$srv"; await 1; }
`

func (g *guest) run(script string) string {
	g.t.Helper()
	return vmtest.Run(g.t, g.m, limit, fmt.Sprintf(prelude, g.kind)+script)
}

// serverOf and clientOf return the command lines of a program, which may be installed under another
// name.
func (g *guest) serverOf(who, name string) string {
	if who == "cmtime" {
		return name + " -b $RDMA_ADDR"
	}
	return name + " time -s -a $RDMA_ADDR"
}

func (g *guest) clientOf(who, name string, n int) string {
	if who == "cmtime" {
		return fmt.Sprintf("%s -s $RDMA_ADDR -b $RDMA_ADDR -c %d", name, n)
	}
	return fmt.Sprintf("%s time -c -a $RDMA_ADDR -I $RDMA_ADDR -n %d --json", name, n)
}

// connect makes a client connect n times to a server, checks that nothing is left, and returns the
// output.
func (g *guest) connect(client, server string, n int) string {
	g.t.Helper()
	out := g.run(fmt.Sprintf("serve %s\n%s 2>&1 || exit 1\nunserve\n", g.serverOf(server, server), g.clientOf(client, client, n)))
	g.clean()
	return out
}

var row = regexp.MustCompile(`(?m)^([a-z]+(?: [a-z]+)?) *: +(\d+\.\d+) `)

// cmtime runs cmtime and returns the sum of all its steps, in ms.
func (g *guest) cmtime(server string, n int) (total float64) {
	g.t.Helper()
	out := g.connect("cmtime", server, n)
	rows := row.FindAllStringSubmatch(out, -1)
	const all = 8
	if len(rows) != all || strings.Contains(out, "fail") || strings.Contains(out, "error") {
		g.t.Fatalf("cmtime, %d connections:\n%s", n, out)
	}
	var steps []string
	for _, r := range rows {
		ms, _ := strconv.ParseFloat(r[2], 64)
		total += ms
		steps = append(steps, fmt.Sprintf("%s %.0f", r[1], ms))
	}
	g.t.Logf("cmtime to %s, %d: %.0f ms: %s", server, n, total, strings.Join(steps, ", "))
	return total
}

// report is the output of rdmactor time --json.
type report struct {
	Runs []struct {
		IDs    int
		Errors int
		Total  float64 `json:"total_ms"`
		Steps  []struct {
			Step  string
			Total float64 `json:"total_ms"`
		}
	}
	Errors int
	First  string `json:"first_error"`
}

// rdmactor makes actors connect n times and returns the sum of all steps, in ms.
func (g *guest) rdmactor(server string, n int) float64 {
	g.t.Helper()
	return g.reported(server, n, g.connect("rdmactor", server, n))
}

func (g *guest) reported(server string, n int, out string) float64 {
	g.t.Helper()
	var r report
	if i := strings.IndexByte(out, '{'); i < 0 || json.NewDecoder(strings.NewReader(out[i:])).Decode(&r) != nil || len(r.Runs) == 0 || r.Errors > 0 {
		g.t.Fatalf("rdmactor to %s, %d: %s", server, n, out)
	}
	last := r.Runs[len(r.Runs)-1]
	if last.IDs != n {
		g.t.Fatalf("rdmactor to %s has had %d identifiers, not %d", server, last.IDs, n)
	}
	var steps []string
	for _, s := range last.Steps {
		steps = append(steps, fmt.Sprintf("%s %.0f", s.Step, s.Total))
	}
	g.t.Logf("rdmactor to %s, %d: %.0f ms: %s", server, n, last.Total, strings.Join(steps, ", "))
	return last.Total
}

// manyRow makes many identifiers on one channel, binds them and destroys them. The program itself
// checks that no goroutines and descriptors are left.
func (g *guest) manyRow(n int) string {
	out := g.run(fmt.Sprintf("rdmactor time -a $RDMA_ADDR -n 1 --ids %d --json 2>&1 || exit 1\n", n))
	ms := g.reported("itself", n, out)
	g.clean()
	return fmt.Sprintf("| %d identifiers made, bound, destroyed, ms | | %.0f, nothing left | |", n, ms)
}

// clean checks that nothing is left in the kernel except the kernel's own objects, which have no
// process.
func (g *guest) clean() {
	g.t.Helper()
	for _, what := range []string{"cm_id", "qp", "cq", "mr", "pd", "ctx", "srq"} {
		if left := g.run(fmt.Sprintf("sleep 0.2; rdma resource show %s | grep ' pid ' || true\n", what)); left != "" {
			g.t.Errorf("left behind: %s", left)
		}
	}
}
