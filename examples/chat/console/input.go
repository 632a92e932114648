package console

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/examples/chat/room"
)

const (
	// Ahead is how many lines may be waiting that were typed while nobody takes them.
	Ahead = 64
	// PipeFor is how long a pipe's lines may wait.
	PipeFor = 10 * time.Second
)

// ErrNotTaken is why Read ends when nobody has taken a line of a pipe for [PipeFor].
var ErrNotTaken = errors.New("no line")

// Input is what is typed at a console, so many lines ahead of those that are done.
type Input struct {
	con    Console
	by     string // who takes the lines
	tokens chan struct{}
}

// NewInput returns the input of a console. by is who takes the lines, such as "the server".
func NewInput(con Console, by string) *Input {
	return &Input{con: con, by: by, tokens: make(chan struct{}, Ahead)}
}

// Done has one more line be typed. It is called once for each that Read has given.
func (in *Input) Done() { <-in.tokens }

// Read gives each line that is typed to take. If too many are not done, lines from a pipe wait for
// a while. A person who types does not wait, because they could not leave meanwhile. It ends when
// the person leaves, or with the input. asked reports that a person at a terminal wants to leave.
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

// room waits for room for a line, as long as it may.
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
