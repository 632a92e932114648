package console

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/lab/chat/room"
)

const (
	// Ahead is how many typed lines may wait to be processed.
	Ahead = 64
	// PipeFor limits how long a pipe's lines may wait.
	PipeFor = 10 * time.Second
)

// ErrNotTaken is returned by Read if no line of a pipe was taken for [PipeFor].
var ErrNotTaken = errors.New("no line")

// Input reads the lines typed at a console, at most Ahead lines ahead of those that are done.
type Input struct {
	con    Console
	by     string // the consumer's name
	tokens chan struct{}
}

// NewInput returns the input of a console. by names the consumer of the lines, such as "the
// server".
func NewInput(con Console, by string) *Input {
	return &Input{con: con, by: by, tokens: make(chan struct{}, Ahead)}
}

// Done allows Read to read one more line. It is called once for each line that Read has passed on.
func (in *Input) Done() { <-in.tokens }

// Read passes each typed line to take. If too many are not done, lines from a pipe wait for a
// while. A person does not wait, because while waiting they could not leave. Read returns when the
// person leaves, or at the end of the input. asked reports that a person at a terminal wants to
// leave.
func (in *Input) Read(take func(line string)) (asked bool, err error) {
	for {
		line, err := in.con.ReadLine()
		switch {
		case err == nil && strings.TrimSpace(line) != "/quit":
		case in.con.Attended():
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		default:
			return false, err
		}
		ok, err := in.room(line)
		if err != nil {
			return false, err
		}
		if ok {
			take(line)
		}
	}
}

// room waits until there is room for a line, as long as the line may wait.
func (in *Input) room(line string) (bool, error) {
	select {
	case in.tokens <- struct{}{}:
		return true, nil
	default:
	}
	if in.con.Attended() {
		in.con.Status(fmt.Sprintf("not sent, %d lines before it wait for %s: %s", Ahead, in.by, room.Clean(line)))
		return false, nil
	}
	late := time.NewTimer(PipeFor)
	defer late.Stop()
	select {
	case in.tokens <- struct{}{}:
		return true, nil
	case <-late.C:
		return false, fmt.Errorf("%s has taken %w for %v", in.by, ErrNotTaken, PipeFor)
	}
}
