//go:build vm

package vmtest

import (
	"fmt"
	"testing"
)

// listener is a testing.TB that records its log.
type listener struct {
	testing.TB
	lines *[]string
}

func (l listener) Logf(format string, args ...any) {
	*l.lines = append(*l.lines, fmt.Sprintf(format, args...))
}

// failures is a testing.TB that records its errors instead of failing.
type failures struct {
	testing.TB
	lines []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}
func (f *failures) Logf(string, ...any) {}
func (f *failures) Failed() bool        { return len(f.lines) > 0 }
