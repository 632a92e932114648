package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
)

const patience = 2 * time.Minute

// pty is a terminal of this process, and the bytes written to it.
type pty struct {
	t             *testing.T
	master, slave *os.File
	mu            sync.Mutex
	shown         strings.Builder
	read          chan struct{}
}

func newPTY(t *testing.T, reads bool) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, master: master, slave: slave, read: make(chan struct{})}
	if reads {
		go p.copy()
	} else {
		close(p.read)
	}
	t.Cleanup(func() {
		_ = slave.Close() // the last descriptor: afterwards the terminal reports an error
		<-p.read
		_ = master.Close()
	})
	return p
}

func (p *pty) copy() {
	defer close(p.read)
	b := make([]byte, 4096)
	for {
		n, err := p.master.Read(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.shown.Write(b[:n])
		p.mu.Unlock()
	}
}

// want waits until the terminal has shown text.
func (p *pty) want(text string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		shown := p.shown.String()
		p.mu.Unlock()
		if strings.Contains(shown, text) {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("never shown: %q, but %q", text, shown)
		}
	}
}

// modes returns the terminal's modes.
func (p *pty) modes() unix.Termios {
	p.t.Helper()
	modes, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *modes
}

// program returns a client of a page with constant answers.
func program(t *testing.T) *page.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := said(question{}, int(time.Now().UnixMilli()%1000))
		a.overview.Interval = 0.1
		switch {
		case strings.HasSuffix(r.URL.Path, "/ids"):
			_ = json.NewEncoder(w).Encode(a.ids)
		case strings.HasSuffix(r.URL.Path, "/sections"):
			_, _ = io.WriteString(w, "[]")
		default:
			_ = json.NewEncoder(w).Encode(a.overview)
		}
	}))
	t.Cleanup(server.Close)
	c, err := page.Open(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestRunRestores: however Run ends, the terminal has its original modes.
func TestRunRestores(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p *pty, cancel func())
		want error
	}{
		"q":       {func(p *pty, _ func()) { _, _ = io.WriteString(p.master, "q") }, nil},
		"its end": {func(_ *pty, cancel func()) { cancel() }, nil},
		"a panic": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPTY(t, true)
			before := p.modes()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var client *page.Client // nil: causes a panic while drawing
			if c.end != nil {
				client = program(t)
			}
			ended := make(chan error, 1)
			go func() {
				defer func() {
					if p := recover(); p != nil {
						ended <- fmt.Errorf("panic: %v", p)
					}
				}()
				ended <- Run(ctx, client, page.Query{}, p.slave, p.slave)
			}()
			if c.end != nil {
				p.want("10.0.0.1:50000")
				if now := p.modes(); now.Lflag&unix.ICANON != 0 {
					t.Error("the terminal is not raw")
				}
				c.end(p, cancel)
			}
			err := <-ended
			if panicked := err != nil && strings.HasPrefix(err.Error(), "panic: "); panicked != (c.end == nil) || !panicked && !errors.Is(err, c.want) {
				t.Error(err)
			}
			if after := p.modes(); after != before {
				t.Errorf("the terminal has %+v, and had %+v", after, before)
			}
			p.want(leave)
		})
	}
}

// TestRunStuck: a terminal that reads nothing gets its modes back, and Run returns.
func TestRunStuck(t *testing.T) {
	p := newPTY(t, false)
	before := p.modes()
	if err := unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 500, Row: 200}); err != nil {
		t.Fatal(err)
	}
	client := program(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	if err := Run(ctx, client, page.Query{}, p.slave, p.slave); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("it took %v", took)
	}
	if after := p.modes(); after != before {
		t.Errorf("the terminal has %+v, and had %+v", after, before)
	}
	b := make([]byte, 1<<16) // now the terminal is read, and the writer ends
	go func() {
		for {
			if _, err := p.master.Read(b); err != nil {
				return
			}
		}
	}()
}

// TestRunHungUp: without a terminal Run returns.
func TestRunHungUp(t *testing.T) {
	p := newPTY(t, true)
	ended := make(chan error, 1)
	client := program(t)
	go func() { ended <- Run(t.Context(), client, page.Query{}, p.slave, p.slave) }()
	p.want("10.0.0.1:50000")
	_ = p.master.Close()
	if err := <-ended; !errors.Is(err, errHungUp) {
		t.Error(err)
	}
}

// TestLateAnswers: an answer to a canceled question is not shown, even if the same question was
// asked again in between.
func TestLateAnswers(t *testing.T) {
	client := program(t)
	p := newPTY(t, true)
	terminal, err := openTerminal(p.slave, p.slave)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.close()
	s := &session{
		model: newModel(page.Query{}), client: client, terminal: terminal, answers: make(chan answer), due: time.NewTimer(time.Hour),
		cancel: func() {},
	}
	defer s.due.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.askQuestion(ctx)
	first := <-s.answers
	s.askQuestion(ctx)
	first.err = context.Canceled
	s.handleAnswer(first)
	if s.err != nil || !s.got.IsZero() {
		t.Errorf("it shows %v", s.err)
	}
	s.handleAnswer(<-s.answers)
	s.handleAnswer(first)
	if s.err != nil || s.got.IsZero() {
		t.Errorf("after the last answer it shows %v", s.err)
	}
}
