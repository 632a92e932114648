package swarm

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// Twice plays a plan twice. If the two traces differ, that is the failure, with the first lines
// that differ: a difference that depends on chance may not occur again. print is called with the
// lines of the first run; nil: none.
func (p *Plan) Twice(t *testing.T, print func(line string)) world.Result {
	t.Helper()
	first, one := p.traced(t, print)
	if first.Failure != "" {
		return first
	}
	second, other := p.traced(t, nil)
	if second.Failure != "" {
		return second
	}
	if first.Hash != second.Hash {
		first.Failure = "two runs differ: " + Differ(one, other)
	}
	return first
}

// traced plays the plan, and returns its trace. print is called with each line; nil: none.
func (p *Plan) traced(t *testing.T, print func(line string)) (r world.Result, trace []string) {
	t.Helper()
	r = p.Play(t, func(s string) {
		if print != nil {
			print(s)
		}
		if !strings.HasPrefix(s, world.Aside) {
			trace = append(trace, s)
		}
	})
	return r, trace
}

// Differ describes where two traces diverge, with the surrounding lines.
func Differ(a, b []string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	const before, after = 5, 3
	from := max(0, n-before)
	around := func(all []string) string {
		return strings.Join(all[min(n, len(all)):min(n+after, len(all))], "\n")
	}
	return fmt.Sprintf("at line %d, after\n%s\none has\n%s\nand the other\n%s", n+1, strings.Join(a[from:n], "\n"), around(a), around(b))
}

// number matches the parts that differ between two failures of one class.
var number = regexp.MustCompile(`0x[0-9a-f]+|[0-9][0-9.]*((ns|µs|ms|s|m|h)[0-9.]*)*`)

// Class returns the class of a failure: its first line with all numbers replaced. If that line ends
// with a colon, the next two belong to it.
func Class(failure string) string {
	lines := strings.SplitN(failure, "\n", 4)
	n := 1
	if strings.HasSuffix(lines[0], ":") {
		n = min(3, len(lines))
	}
	return number.ReplaceAllString(strings.Join(lines[:n], " "), "N")
}
