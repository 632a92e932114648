package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/examples/chat/console"
	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// ahead is how many of the person's lines may be waiting, typed while the room is away or slow.
const ahead = 64

// input is what the person types, for whichever session there is.
type input struct {
	lines  chan any // *typed, and *quit at the end
	tokens chan struct{}
}

func newInput() *input {
	return &input{lines: make(chan any), tokens: make(chan struct{}, ahead)}
}

// read reads what is typed. If nobody takes it, lines from a pipe wait for a while. A person who
// types does not wait, because they could not leave meanwhile. It ends with standard input, or with
// the program.
func (in *input) read(con console.Console, leave func()) {
	for {
		text, err := con.ReadLine()
		switch {
		case err == nil && strings.TrimSpace(text) != "/quit":
		case con.Attended():
			leave()
			return
		default:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			in.lines <- &quit{why: err}
			return
		}
		select {
		case in.tokens <- struct{}{}:
			in.lines <- &typed{text}
			continue
		default:
		}
		if con.Attended() {
			con.Status(fmt.Sprintf("not sent, %d lines before it wait for the room: %s", ahead, room.Clean(text)))
			continue
		}
		select {
		case in.tokens <- struct{}{}:
			in.lines <- &typed{text}
		case <-time.After(pipeFor):
			in.lines <- &quit{now: true, why: fmt.Errorf("nobody has taken a line for %v", pipeFor)}
			return
		}
	}
}
