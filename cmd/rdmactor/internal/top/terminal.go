package top

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/rdmactor/rdmactor/internal/plain"
)

const (
	// alternate screen, no cursor, no wrapping
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	// restores the screen
	leave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	// how long a terminal may read nothing at the end
	leaveFor  = time.Second
	largest   = 1000 // columns and lines
	keysRoom  = 1024
	smallest  = 1
	usualWide = 80
	usualHigh = 24
)

// errHungUp: the terminal is gone.
var errHungUp = errors.New("the terminal is gone")

// terminal is a terminal in raw mode, on its alternate screen.
type terminal struct {
	in, out *os.File
	before  *term.State
	typed   chan []byte   // raw bytes: only Run's goroutine decodes them
	gone    chan struct{} // closed when no more keys will arrive
	wake    [2]*os.File   // a pipe that ends the reading
	frames  chan string   // the newest frame not yet written
	stop    chan struct{}
	readers sync.WaitGroup
	written chan struct{} // closed when writing has ended
	once    sync.Once
}

// openTerminal makes the terminal raw. Its caller must close it in every case.
func openTerminal(in, out *os.File) (*terminal, error) {
	t := &terminal{
		in: in, out: out, typed: make(chan []byte), gone: make(chan struct{}), frames: make(chan string, 1),
		stop: make(chan struct{}), written: make(chan struct{}),
	}
	var err error
	if t.wake[0], t.wake[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	if t.before, err = term.MakeRaw(int(in.Fd())); err != nil {
		_, _ = t.wake[0].Close(), t.wake[1].Close()
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	t.readers.Add(1)
	go t.readKeys()
	go t.writeFrames()
	return t, nil
}

// close restores the terminal, even if it no longer reads. Only the first call has an effect.
func (t *terminal) close() {
	t.once.Do(func() {
		close(t.stop)
		_ = t.wake[1].Close()
		t.readers.Wait()
		_ = t.wake[0].Close()
		late := time.NewTimer(leaveFor)
		defer late.Stop()
		select {
		case <-t.written:
		case <-late.C:
			// drops unread output
			_ = unix.IoctlSetInt(int(t.out.Fd()), flushRequest, flushOutput)
			select {
			case <-t.written:
			case <-time.After(leaveFor):
			}
		}
		_ = term.Restore(int(t.in.Fd()), t.before)
	})
}

// readKeys reads keys until the terminal is closed, or gone.
func (t *terminal) readKeys() {
	defer t.readers.Done()
	defer close(t.gone)
	b := make([]byte, keysRoom)
	for {
		fds := []unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}, {Fd: int32(t.wake[0].Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if fds[1].Revents != 0 {
			return
		}
		if fds[0].Revents == 0 {
			continue
		}
		n, err := unix.Read(int(t.in.Fd()), b)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil || n <= 0:
			return
		}
		select {
		case t.typed <- bytes.Clone(b[:n]):
		case <-t.stop:
			return
		}
	}
}

// writeFrames writes the newest frame, and at the end the sequence that restores the screen.
func (t *terminal) writeFrames() {
	defer close(t.written)
	if _, err := io.WriteString(t.out, enter); err != nil {
		return
	}
	for {
		select {
		case frame := <-t.frames:
			if _, err := io.WriteString(t.out, frame); err != nil {
				return
			}
		case <-t.stop:
			_, _ = io.WriteString(t.out, leave)
			return
		}
	}
}

// queueFrame queues a frame for writing, and replaces one that waits.
func (t *terminal) queueFrame(frame string) {
	select {
	case <-t.frames:
	default:
	}
	t.frames <- frame // there is no other sender
}

// size returns the number of columns and lines.
func (t *terminal) size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(t.out.Fd()))
	if err != nil || columns < smallest || lines < smallest {
		return usualWide, usualHigh
	}
	return min(columns, largest), min(lines, largest)
}

// encodeFrame encodes the lines for a terminal. Their text is plain, so only the styles are escape
// sequences.
func encodeFrame(lines []line, columns int) string {
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[H")
	for n, l := range lines {
		if n > 0 {
			b.WriteString("\r\n")
		}
		if l.style != normal {
			b.WriteString("\x1b[" + string(l.style) + "m")
		}
		b.WriteString(plain.Fit(l.text, columns))
		if l.style != normal {
			b.WriteString("\x1b[0m")
		}
	}
	b.WriteString("\x1b[J\x1b[?2026l")
	return b.String()
}
