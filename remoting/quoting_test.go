package remoting_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// verbatim is a handler that writes its input unquoted, as some consoles' do.
type verbatim struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (v *verbatim) Enabled(context.Context, slog.Level) bool { return true }

func (v *verbatim) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines = append(v.lines, line)
	return nil
}

func (v *verbatim) WithAttrs([]slog.Attr) slog.Handler { return v }
func (v *verbatim) WithGroup(string) slog.Handler      { return v }

// A peer's texts reach the log in one line, also one that does not quote: the names of targets and
// types, its own name, its reasons. If this node ends the connection, it logs why.
func TestLogOfAHostilePeer(t *testing.T) {
	const evil = "x\n2000/01/01 INFO all is well\x1b[2J"
	v := &verbatim{}
	instead = slog.New(v)
	defer func() { instead = nil }()
	n := start(t, remoting.Config{})
	s := meet(t, n, evil+":7471").introduce()
	s.say(
		frame.Record{Kind: frame.KindUser, Target: evil, Type: evil, Body: []byte("?")},
		frame.Record{Kind: frame.KindUser, Target: "no one", Type: evil, Body: []byte("?")},
		frame.Record{Kind: frame.KindWatch, Target: evil, Sender: frame.PID{ID: evil}},
		frame.Record{Kind: frame.KindStop, Target: evil},
	)
	await(t, n, anyEvent[*remoting.Refused])
	s.say(frame.Record{Kind: frame.KindGoodbye, Code: 200, Reason: evil})
	await(t, n, anyEvent[*remoting.Disconnected])
	meet(t, n, evil+":7472").introduce().send([]byte("garbage"))
	eventually(t, "the reason is not logged", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return slices.ContainsFunc(v.lines, func(line string) bool {
			return strings.Contains(line, "a connection ends") && strings.Contains(line, remoting.ErrProtocol.Error())
		})
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := 0
	for _, line := range v.lines {
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", line)
		}
		if strings.Contains(line, `x\n2000`) {
			seen++
		}
	}
	if seen < 2 {
		t.Errorf("%d lines have the peer's text: %q", seen, v.lines)
	}
}
