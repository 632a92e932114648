package world

import (
	"fmt"
	"hash"
	"hash/fnv"
	"time"
)

// Aside starts a line of the trace that is not hashed: it may differ from run to run.
const Aside = "# "

// trace is the record of a run, as a hash and, if requested, as lines.
type trace struct {
	hash  hash.Hash64
	print func(line string) // nil: not printed
	buf   []byte
}

func newTrace(print func(string)) *trace { return &trace{hash: fnv.New64a(), print: print} }

// addLine adds one line.
func (t *trace) addLine(at time.Duration, format string, args ...any) {
	t.buf = fmt.Appendf(t.buf[:0], "%12s  ", at)
	t.buf = fmt.Appendf(t.buf, format, args...)
	_, _ = t.hash.Write(t.buf) // never fails
	if t.print != nil {
		t.print(string(t.buf))
	}
}

// addNote adds a line that is not part of the hash. It starts with Aside.
func (t *trace) addNote(at time.Duration, text string) {
	if t.print != nil {
		t.print(fmt.Sprintf("%s%12s  %s", Aside, at, text))
	}
}
