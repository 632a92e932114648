// Package console reads a user's lines and shows a chat: on a terminal in raw mode, or on pipes.
package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Console reads the user's lines and shows the chat. Each method may be called by any goroutine,
// but only one reads lines.
type Console interface {
	// ReadLine returns the next line without its end. It returns io.EOF at the end of the input, or
	// if the user pressed Ctrl-C or Ctrl-D.
	ReadLine() (string, error)
	// Print shows one line of the chat. The error is why it could not be shown.
	Print(s string) error
	// Status shows one line about the program: connected, gone, help.
	Status(s string)
	// Attended reports whether a person types, who must never have to wait.
	Attended() bool
	// Close restores the terminal's mode. Only the first call has an effect.
	Close() error
}

// Open returns the console with line editing if both ends are a terminal, else the plain one. The
// plain one cuts a line that is longer than most bytes after most+1 bytes.
func Open(prompt string, most int) (Console, error) {
	if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) {
		return openTerminal(prompt)
	}
	return &pipe{in: bufio.NewReader(os.Stdin), most: most, out: os.Stdout, status: os.Stderr}, nil
}

// pipe is one line in, one line out; status lines go to standard error.
type pipe struct {
	in     *bufio.Reader
	most   int        // bytes per line
	mu     sync.Mutex // lines are written by the client's actor and by the reader of standard input
	out    io.Writer
	status io.Writer
}

func (p *pipe) ReadLine() (string, error) {
	var line []byte
	for {
		part, isPrefix, err := p.in.ReadLine()
		if err != nil {
			return "", err
		}
		// the rest of a line that is too long is dropped
		if room := p.most + 1 - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if !isPrefix {
			return string(line), nil
		}
	}
}

func (p *pipe) Print(s string) error { return p.write(p.out, s) }

// there is nowhere to report an error
func (p *pipe) Status(s string) { _ = p.write(p.status, "-- "+s) }
func (p *pipe) Attended() bool  { return false }
func (p *pipe) Close() error    { return nil }

func (p *pipe) write(w io.Writer, s string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintln(w, s)
	return err
}

// terminal edits lines, keeps a history, and keeps the prompt intact while the chat scrolls above
// it. It is in raw mode until Close: Ctrl-C is a key then, not a signal.
type terminal struct {
	*term.Terminal
	before *term.State
	resize chan os.Signal
	closed atomic.Bool
}

func openTerminal(prompt string) (*terminal, error) {
	before, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	t := &terminal{
		Terminal: term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{os.Stdin, os.Stdout}, prompt),
		before: before,
		resize: make(chan os.Signal, 1),
	}
	signal.Notify(t.resize, unix.SIGWINCH)
	t.resize <- unix.SIGWINCH
	go t.followSize()
	return t, nil
}

func (t *terminal) followSize() {
	for range t.resize {
		// 0: unknown to the terminal
		if w, h, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
			_ = t.SetSize(w, h) // it only repaints
		}
	}
}

func (t *terminal) ReadLine() (string, error) {
	s, err := t.Terminal.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return s, err
}

func (t *terminal) Print(s string) error {
	var w io.Writer = t.Terminal
	if t.closed.Load() {
		w = os.Stdout
	}
	_, err := fmt.Fprintln(w, s)
	return err
}

// there is nowhere to report an error
func (t *terminal) Status(s string) { _ = t.Print("-- " + s) }
func (t *terminal) Attended() bool  { return true }

// Close does not wait for a pending write, because the terminal itself may be stuck.
func (t *terminal) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	signal.Stop(t.resize)
	close(t.resize)
	err := term.Restore(int(os.Stdin.Fd()), t.before)
	atMost(func() { fmt.Fprintln(os.Stdout) }) // later output must not continue the prompt's line
	return err
}

// Fail ends a program with an error, which it prints if the terminal is not stuck.
func Fail(program string, err error) {
	atMost(func() { fmt.Fprintln(os.Stderr, program+":", err) })
	os.Exit(1)
}

// Note prints a line about the program at its end if the terminal is not stuck.
func Note(s string) { atMost(func() { fmt.Fprintln(os.Stderr, "--", s) }) }

// lastWord limits how long that may take.
const lastWord = time.Second

func atMost(write func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		write()
	}()
	select {
	case <-done:
	case <-time.After(lastWord):
	}
}
