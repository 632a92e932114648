package states

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/states.md")

const docsPath = "../docs/states.md"

// TestDocs compares docs/states.md with the table it is generated from.
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
		t.Errorf("%s is stale: go test ./states -run Docs -update", docsPath)
	}
}

// page returns docs/states.md.
func page() string {
	var b strings.Builder
	b.WriteString(`# The state machine of an identifier

Generated from package states by ` + "`go test ./states -run Docs -update`" + `; do not edit.

Every identifier (` + "`rdma_cm_id`" + `) is in one of these states. ` + "`rdma resource show cm_id`" + ` prints the kernel's names, of which
CONNECT and DISCONNECT stand for several states each.

| state | kernel | meaning | legal commands that change it |
|---|---|---|---|
`)
	for s := range State(NumStates) {
		fmt.Fprintf(&b, "| %v | %s | %s | %s |\n", s, s.Kernel(), s.Meaning(), strings.Join(leaving(s), ", "))
	}
	b.WriteString("\nDestroyID is legal everywhere but in destroying. The last column leaves it out.\n")
	for _, d := range []struct {
		title, text string
		flavor      Flavor
	}{
		{"InfiniBand and RoCE, connected (RC)", "An owner that leaves its queue pair to the device never sees responded: the device sends the RTU.", 0},
		{"iWARP, connected (RC)", "No reply to be confirmed, and no timewait: timewait is the closed connection.", IWARP},
		{"InfiniBand and RoCE, datagrams (UD)", "Connect looks a datagram service up; there is nothing to disconnect.", UD},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```mermaid\n%s```\n", d.title, d.text, mermaid(d.flavor))
	}
	b.WriteString(`
## Guards

Commands that the kernel would execute, but that are refused here with EINVAL, because they harm a connection or the
machine or contradict the manual page. The kernel refuses every other refused command, too, with the same errno.

| command | in | on | why |
|---|---|---|---|
`)
	for _, g := range guards() {
		fmt.Fprintf(&b, "| %v | %s | %s | %s |\n", g.Op, joined(g.States), strings.Join(transports(g), ", "), g.Text)
	}
	return b.String()
}

// leaving lists the commands that move an identifier out of s in some flavor.
func leaving(s State) []string {
	var names []string
	for op := range Op(numOps) {
		for f := range Flavor(NumFlavors) {
			if next, _ := Step(f, s, Requested(op)); next != s && op != OpDestroyID && Exists(f, s) {
				names = append(names, op.String())
				break
			}
		}
	}
	return names
}

// transports names the flavors a guard applies to, the device bit apart.
func transports(g guarded) []string {
	var names []string
	for f := range Device {
		for _, s := range g.States {
			if g.applies(f, s) && Exists(f, s) || g.applies(f|Device, s) && Exists(f|Device, s) {
				names = append(names, f.String())
				break
			}
		}
	}
	return names
}

func joined(states []State) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}

// TestMermaid checks the syntax that Mermaid's parser demands of a stateDiagram-v2, line by line:
// a declaration of each state before its use, then arrows between declared states.
func TestMermaid(t *testing.T) {
	declare := regexp.MustCompile(`^    state "[a-z -]+" as ([a-z_]+)$`)
	arrow := regexp.MustCompile(`^    ([a-z_]+|\[\*\]) --> ([a-z_]+|\[\*\])(?: : [A-Za-z_, ]+)?$`)
	for f := range Flavor(NumFlavors) {
		lines := strings.Split(strings.TrimSuffix(mermaid(f), "\n"), "\n")
		if lines[0] != "stateDiagram-v2" {
			t.Errorf("%v: begins with %q", f, lines[0])
		}
		known := map[string]bool{"[*]": true}
		arrows := map[string]bool{}
		for _, line := range lines[1:] {
			if m := declare.FindStringSubmatch(line); m != nil {
				known[m[1]] = true
				continue
			}
			m := arrow.FindStringSubmatch(line)
			if m == nil || !known[m[1]] || !known[m[2]] {
				t.Errorf("%v: line %q", f, line)
				continue
			}
			if arrows[m[1]+m[2]] {
				t.Errorf("%v: a second arrow in %q", f, line)
			}
			arrows[m[1]+m[2]] = true
		}
		for s := range State(NumStates) {
			if name := "s_" + strings.ReplaceAll(s.String(), "-", "_"); known[name] != Exists(f, s) {
				t.Errorf("%v: %s drawn: %v", f, name, known[name])
			}
		}
	}
}

// TestEdges: the diagram shows every change of state that is allowed, but for DestroyID and
// DeviceRemoval, and no other.
func TestEdges(t *testing.T) {
	for f := range Flavor(NumFlavors) {
		drawn := map[[2]State]string{}
		for _, e := range Edges(f) {
			drawn[[2]State{e.From, e.To}] = "," + strings.Join(e.Inputs, ",") + ","
		}
		n := 0
		cells(func(g Flavor, s State, in Input) {
			next, _ := Step(g, s, in)
			if g != f|Device || next == s || !Exists(g, s) || in == Requested(OpDestroyID) || in == Occurred(KindDeviceRemoval) {
				return
			}
			n++
			if !strings.Contains(drawn[[2]State{s, next}], ","+in.String()+",") {
				t.Errorf("%v: %v -> %v by %v is not drawn", f, s, next, in)
			}
		})
		for _, labels := range drawn {
			n -= strings.Count(labels, ",") - 1
		}
		if n != 0 {
			t.Errorf("%v: %d arrows too few", f, n)
		}
	}
}
