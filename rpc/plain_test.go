package rpc

import (
	"strings"
	"testing"
)

// A peer's error text can neither add lines to a log nor control a terminal.
func TestErrorTextIsPlain(t *testing.T) {
	for _, text := range []string{"two\nlines", "\x1b[2J", "a\u202eb", "\xff"} {
		e := &Error{Code: CodeUnknown, Message: text}
		if got := e.Error(); strings.Contains(got, text) {
			t.Errorf("%q is part of %q", text, got)
		}
	}
	if got := (&Error{Code: CodeUnknown, Fate: FateAnswered, Message: "no such key: \u00fc \"x\""}).Error(); !strings.HasSuffix(got, ": no such key: \u00fc \"x\"") {
		t.Errorf("a text that is plain is %q", got)
	}
}
