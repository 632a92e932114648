package remoting

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Text from a peer appears in errors, events and their texts in one line, without sequences that a
// terminal would interpret.
func TestTextOfPeersIsQuoted(t *testing.T) {
	const evil = "x\n2000/01/01 INFO all is well\x1b[2J\u202e"
	pid := actor.NewPID(evil, evil)
	peer := Peer{Name: evil, Member: evil}
	why := errors.New("why")
	for name, text := range map[string]any{
		"a goodbye":             partingOf(&frame.Record{Code: frame.GoodbyeShutdown, Reason: evil}).err,
		"a goodbye of no code":  partingOf(&frame.Record{Code: 200, Reason: evil}).err,
		"a refusal: denied":     reasonOf(&frame.Record{Code: frame.RefusedDenied, Reason: evil}),
		"a refusal: codec":      reasonOf(&frame.Record{Code: frame.RefusedUnknownType, Reason: evil}),
		"a refusal: overflow":   reasonOf(&frame.Record{Code: frame.RefusedOverflow, Reason: evil}),
		"a refusal of no code":  reasonOf(&frame.Record{Code: 200, Reason: evil}),
		"Unknown":               &Unknown{Target: pid, Err: why},
		"Unknown of a Spawn":    &Unknown{Target: actor.NewPID(evil, ""), Err: why},
		"Refused":               &Refused{Target: pid, By: evil, Err: why},
		"Connected":             &Connected{Peer: peer},
		"NotAdmitted":           &NotAdmitted{Peer: peer, Err: why},
		"Disconnected":          &Disconnected{Peer: peer, Err: why},
		"Disconnected in order": &Disconnected{Peer: peer},
		"NotSent":               &NotSent{Peer: peer, Err: why},
		"Unreported":            &Unreported{Peer: peer},
	} {
		got := fmt.Sprint(text)
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(got, `x\n2000`) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
