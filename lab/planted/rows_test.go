package planted

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/rdmactor/rdmactor/"
)

// citation is a test that a row names.
type citation struct {
	pkg  string // "cmid/cmidtest"
	test string // "TestConformance/InfiniBand/bind_addr/wildcard"
}

func (c citation) String() string { return c.pkg + "." + c.test }

// kernel reports whether the test needs the kernel's devices.
func (c citation) kernel() bool { return c.pkg == "cmid/ucm" }

// real reports whether it runs on a device, not on the twin or above the drivers.
func (c citation) real() bool { return c.pkg == "iwarp" || c.kernel() }

// scenario returns the conformance suite's name for the test, which is the same for every device.
// Other tests have different names.
func (c citation) scenario() string {
	if s, ok := strings.CutPrefix(c.test, "TestConformance/"); ok {
		return strings.TrimPrefix(s, "InfiniBand/")
	}
	return c.String()
}

var (
	row  = regexp.MustCompile(`^\| *(\w+-\d+) *\|[^|]*\|([^|]*)\|`)
	cite = regexp.MustCompile("`([a-z0-9_/]+)\\.(Test[^`]+)`")
)

// cited reads the rows that cite tests from internal/docscheck/manpages.md.
func cited(t testing.TB) map[string][]citation {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(root, "internal", "docscheck", "manpages.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]citation{}
	for line := range strings.Lines(string(doc)) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, c := range cite.FindAllStringSubmatch(m[2], -1) {
			out[m[1]] = append(out[m[1]], citation{c[1], c[2]})
		}
	}
	if len(out) == 0 {
		t.Fatal("internal/docscheck/manpages.md cites no test")
	}
	return out
}
