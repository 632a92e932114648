package oracle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// verdicts collects the verdicts of a ledger.
type verdicts []string

func (v *verdicts) fail(format string, args ...any) { *v = append(*v, fmt.Sprintf(format, args...)) }

// want checks the verdicts: one that contains text, or none if text is empty.
func (v verdicts) want(t *testing.T, text string) {
	t.Helper()
	switch {
	case text == "" && len(v) > 0:
		t.Errorf("verdicts %q, want none: nothing is wrong here", v)
	case text != "" && (len(v) == 0 || !strings.Contains(v[0], text)):
		t.Errorf("verdicts %q, want one with %q", v, text)
	}
}

const s = time.Second
