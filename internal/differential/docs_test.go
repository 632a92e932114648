package differential

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/differences.md")

const docsPath = "../../docs/differences.md"

// TestDocs compares docs/differences.md with the table it is generated from.
func TestDocs(t *testing.T) {
	want := page()
	if *update {
		if err := os.WriteFile(docsPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: go generate ./internal/differential", docsPath)
	}
}

// TestAccepted: every entry says where and why.
func TestAccepted(t *testing.T) {
	for i, e := range Accepted {
		if len(e.Pairs) == 0 || len(e.States) == 0 || len(e.Deltas) == 0 || e.Why == "" {
			t.Errorf("entry %d (%s) lacks pairs, states, deltas or a reason", i, e.Command)
		}
		for _, p := range e.Pairs {
			if !slices.ContainsFunc(pairTitles, func(x [2]string) bool { return x[0] == p }) {
				t.Errorf("entry %d (%s) is of %q, which is no pair", i, e.Command, p)
			}
		}
	}
}

// pairTitles are the pairs in the page's order.
var pairTitles = [][2]string{
	{RoCEPair, "Linux on soft-RoCE, and the in-memory twin's InfiniBand"},
	{SoftPair, "Linux on soft-iWARP, and the embedded device"},
	{SiwTwinPair, "Linux on soft-iWARP, and the in-memory twin's iWARP"},
	{TwinsPair, "The in-memory twin's iWARP, and the twin that plays the embedded device"},
	{EmbeddedPair, "The in-memory twin that plays the embedded device, and the embedded device"},
}

// page is docs/differences.md.
func page() string {
	var b strings.Builder
	b.WriteString(`# Where drivers differ

Generated from the table in internal/differential by ` + "`go generate ./internal/differential`" + `; do not edit.

Random command sequences run on two drivers at once, above the state machine's guards, and everything the identifiers show is compared
after each step: errnos, events with status and private data, depths, states, addresses, whether there is a device. A
difference that is not listed here is an error; one that is listed and does not show in a long run is an error too, unless it is a
matter of luck. InfiniBand and iWARP differ by nature, and are compared with their own kind only; how they differ is in
[states.md](states.md). What the guards refuse never reaches a driver, so it cannot differ. One command is not asked: Notify with
PathMigrated on an established InfiniBand connection, which has the kernel go over to an alternate path that nobody can have loaded;
a Disconnect then reaches nobody.

Ports, queue pair numbers, depths above 16 and the greatest length of private data are compared by name. Not compared: how long
timers are, and so TimewaitExit; messages of errors; data.

In the tables, "self" is the identifier that got the command, "other" another one; * is anything.
`)
	for _, title := range pairTitles {
		rows := 0
		for _, e := range Accepted {
			if slices.Contains(e.Pairs, title[0]) {
				if rows++; rows == 1 {
					left, right, _ := strings.Cut(title[0], ", ")
					fmt.Fprintf(&b, "\n## %s\n\n| command | in | what differs | %s | %s | why |\n|---|---|---|---|---|---|\n", title[1], left, right)
				}
				b.WriteString(e.rows())
			}
		}
		if rows == 0 {
			fmt.Fprintf(&b, "\n## %s\n\nNo accepted difference.\n", title[1])
		}
	}
	return b.String()
}

// rows has a line for each delta of an entry.
func (e *Entry) rows() string {
	var b strings.Builder
	value := func(s string) string {
		if s == "" {
			return "nothing"
		}
		return "`" + s + "`"
	}
	for i, d := range e.Deltas {
		command, states, why := "`"+e.Command+"`", strings.Join(e.States, ", "), e.Why
		if i > 0 {
			command, states, why = "", "", ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", command, states, d.Of, value(d.Left), value(d.Right), why)
	}
	return b.String()
}
