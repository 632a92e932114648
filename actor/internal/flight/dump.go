package flight

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is what kind of thing a Record is about.
type Kind uint8

// The kinds.
const (
	Transition Kind = iota // an identifier has left a state for another
	Command                // an identifier was asked for something, but to move bytes
	Event                  // it has reported something, other than bytes that were moved
	Refusal                // the runtime has refused a connection request
	End                    // this side has broken a connection off
	Panic                  // code on the loop has panicked, or has ended the loop
	Stall                  // something has occupied the loop for too long
	Handshake              // a step of a secured connection's handshake
	NumKinds
)

var kinds = []string{"transition", "command", "event", "refusal", "end", "panic", "stall", "handshake"}

// String is the kind in a word.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText is String's text.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Record is one thing that has happened.
type Record struct {
	At    time.Time // when the loop's turn had begun
	ID    uint64    // of which identifier: its Handle; 0: the loop itself
	Kind  Kind
	What  string // such as "connecting -> connected", "connect", "Established"
	Errno int32  // why; 0: nothing has failed
}

// String is one line.
func (r Record) String() string {
	s := fmt.Sprintf("%s  id %-6d %-10s %s", r.At.Format("15:04:05.000000"), r.ID, r.Kind, r.What)
	if r.Errno != 0 {
		s += " " + errnoName(r.Errno)
	}
	return s
}

func errnoName(n int32) string {
	if name := unix.ErrnoName(unix.Errno(n)); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", n)
}

// Dump is a copy of a loop's recorder.
type Dump struct {
	Loop    string
	Why     string // the reason, such as "stall"
	At      time.Time
	Before  uint64   // records that were overwritten, or left out, before the first
	Records []Record // oldest first
}

// WriteTo writes the dump as text: a heading, and one line for each record.
func (d Dump) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "loop %s at %s: %s; %d records, %d before them\n",
		escapeText(d.Loop), d.At.Format("2006-01-02 15:04:05.000000"), escapeText(d.Why), len(d.Records), d.Before)
	for _, r := range d.Records {
		b.WriteString(r.String())
		b.WriteByte('\n')
	}
	return b.WriteTo(w)
}

// escapeText returns s in printable characters. It may contain an actor's name, which may be a
// peer's.
func escapeText(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// String is WriteTo's text.
func (d Dump) String() string {
	var b bytes.Buffer
	_, _ = d.WriteTo(&b) // a Buffer takes everything
	return b.String()
}
