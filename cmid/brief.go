package cmid

import (
	"fmt"
	"strings"
)

// Brief is err in few words, for people and for log lines: what failed, where, and why. For a
// Failure or a GAIError it leaves out the rest of the error's text: the identifier, the state, the
// history, what would have been legal and what to do. The text around these errors stays as it is.
// The result is one line. It is the same line for the same cause, because it does not name the
// local port of a connection. "" for nil. Any goroutine.
func Brief(err error) string {
	switch e := err.(type) { //nolint:errorlint // what is inside is looked at in its turn
	case nil:
		return ""
	case interface{ brief() string }:
		return e.brief()
	case interface{ Unwrap() error }:
		return shortenErrors(err.Error(), e.Unwrap())
	case interface{ Unwrap() []error }:
		// errors.Join's lines
		return strings.ReplaceAll(shortenErrors(err.Error(), e.Unwrap()...), "\n", "; ")
	}
	return err.Error()
}

// shortenErrors replaces the errors' texts in text by short ones.
func shortenErrors(text string, in ...error) string {
	for _, e := range in {
		if e != nil {
			text = strings.Replace(text, e.Error(), Brief(e), 1)
		}
	}
	return text
}

func (f *FailureBase) brief() string {
	where, why := f.Peer, Brief(f.Err)
	if where.IsZero() {
		where = f.Local
	}
	s := f.Op
	if !where.IsZero() && !strings.Contains(why, where.String()) {
		s += " " + where.String()
	}
	if why == "" {
		return s + ": failed"
	}
	return s + ": " + why
}

func (r *Rejected) brief() string { return r.FailureBase.brief() + reasonText(r.PrivateData) }

func (e *GAIError) brief() string {
	s := fmt.Sprintf("%q", e.Node)
	if e.Node == "" || e.Code == EAIService {
		s = fmt.Sprintf("port %q", e.Service)
	}
	s += ": " + error(e.Code).Error()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}
