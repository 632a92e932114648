package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
)

const (
	usual     = time.Second // between two answers
	shortest  = 100 * time.Millisecond
	longest   = time.Minute
	firstWait = time.Second      // after an error
	mostWait  = 10 * time.Second // after several
	staleTick = time.Second      // how often the age of old news is shown anew
	// by when a process that stops itself surely has stopped
	stopsWithin = 100 * time.Millisecond
)

// interval is how often the page has news, as it says itself.
func interval(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return usual
	}
	return time.Duration(max(min(seconds, longest.Seconds()), shortest.Seconds()) * float64(time.Second))
}

// ask has the page answer a question. A panic is an error: the terminal has to be given back.
func ask(ctx context.Context, c *page.Client, q question) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{to: q, err: fmt.Errorf("a fault in this program: %v", p)}
		}
	}()
	a.to = q
	if a.overview, a.err = c.Overview(ctx); a.err != nil {
		return a
	}
	if a.sections, a.err = c.Sections(ctx); a.err != nil {
		return a
	}
	switch {
	case q.section != "":
		a.table, a.err = c.Section(ctx, q.section)
	case q.detail != "":
		if a.one, a.err = c.ID(ctx, q.detail); errors.Is(a.err, page.ErrGone) {
			a.gone, a.err = true, nil
		}
	default:
		a.ids, a.err = c.IDs(ctx, q.Query)
	}
	return a
}

// Once writes what there is, as text. It asks twice, because rates need two answers.
func Once(ctx context.Context, c *page.Client, q page.Query, w io.Writer) error {
	m := newModel(q)
	for n := range 2 {
		began := time.Now()
		m.take(ask(ctx, c, m.question()), time.Now())
		if m.err != nil {
			return m.err
		}
		if n == 1 {
			break
		}
		select {
		// surely another moment
		case <-time.After(time.Until(began.Add(interval(m.overview.Interval) * 5 / 4))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	lines := append(m.summary(c.String(), time.Now()), m.foot())
	for _, l := range append(lines, m.rows()...) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(l.text, " ")); err != nil {
			return err
		}
	}
	return nil
}

// session is a terminal that shows a page.
type session struct {
	*model
	client   *page.Client
	in, out  *os.File
	terminal *terminal
	signals  chan os.Signal
	answers  chan answer
	asked    int                // questions: only the answer to the last one is shown
	cancel   context.CancelFunc // of the last question
	failures int
	due      *time.Timer // for the next question
}

// Run shows the page at a terminal until the user quits, ctx ends, or the terminal is gone. However
// it ends, a panic included, the terminal is as it was before.
func Run(ctx context.Context, c *page.Client, q page.Query, in, out *os.File) (err error) {
	// net/http logs what a server says unasked: that would be in the middle of the screen
	defer log.SetOutput(log.Writer())
	log.SetOutput(io.Discard)
	ctx, cancel := context.WithCancel(ctx)
	s := &session{
		model: newModel(q), client: c, in: in, out: out, answers: make(chan answer), due: time.NewTimer(0), cancel: func() {},
		signals: make(chan os.Signal, 8),
	}
	// The first two end ctx. The second one of them must not kill who gives the terminal back.
	signal.Notify(s.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP)
	defer signal.Stop(s.signals)
	if s.terminal, err = openTerminal(in, out); err != nil {
		cancel()
		return err
	}
	defer func() { s.terminal.close() }()
	defer s.due.Stop()
	defer cancel() // before the terminal is given back: nobody asks any more
	return s.loop(ctx)
}

func (s *session) loop(ctx context.Context) error {
	stale := time.NewTicker(staleTick)
	defer stale.Stop()
	for {
		s.draw()
		select {
		case <-ctx.Done():
			return nil
		case <-s.terminal.gone:
			return errHungUp
		case <-s.terminal.written:
			return errHungUp
		case sig := <-s.signals:
			if err := s.signal(sig); err != nil {
				return err
			}
		case typed := <-s.terminal.typed:
			before := s.question()
			for _, k := range decode(typed) {
				if k == keySuspend {
					_ = unix.Kill(0, unix.SIGTSTP) // this process is among those
				} else if s.press(k) {
					return nil
				}
			}
			if s.question() != before {
				s.ask(ctx)
			}
		case <-s.due.C:
			s.ask(ctx)
		case a := <-s.answers:
			s.answered(a)
		case <-stale.C:
		}
	}
}

func (s *session) signal(sig os.Signal) error {
	switch sig {
	case unix.SIGHUP:
		return errHungUp
	case unix.SIGTSTP:
		return s.suspend()
	case unix.SIGCONT: // a shell has had the terminal meanwhile
		s.terminal.close()
		return s.reopen()
	}
	return nil
}

// suspend gives the terminal back, and has this process stopped if a shell is there to continue it.
func (s *session) suspend() error {
	s.terminal.close()
	sid, err := unix.Getsid(0)
	if err != nil || sid == unix.Getpgrp() { // no shell has made this a job
		return s.reopen()
	}
	if err := unix.Kill(unix.Getpid(), unix.SIGSTOP); err != nil {
		return err
	}
	late := time.NewTimer(stopsWithin)
	defer late.Stop()
	for {
		select {
		case sig := <-s.signals:
			if sig == unix.SIGHUP {
				return errHungUp
			}
			if sig != unix.SIGCONT {
				continue
			}
		case <-late.C:
		}
		return s.reopen()
	}
}

func (s *session) reopen() error {
	t, err := openTerminal(s.in, s.out)
	if err == nil {
		s.terminal = t
	}
	return err
}

// ask asks what the model wants to know now, instead of what it wanted to know before.
func (s *session) ask(ctx context.Context) {
	s.cancel()
	s.due.Stop()
	_, high := s.terminal.size()
	s.query.Size = max(min(high-s.above(high, time.Now()), page.MostRows), 1)
	ctx, s.cancel = context.WithCancel(ctx)
	s.asked++
	n, q := s.asked, s.question()
	go func() {
		a := ask(ctx, s.client, q)
		a.n = n
		select {
		case s.answers <- a:
		case <-ctx.Done():
		}
	}()
}

// answered shows an answer, and says when to ask again.
func (s *session) answered(a answer) {
	if a.n != s.asked {
		return // to a question that was canceled a moment ago
	}
	s.cancel()
	now := time.Now()
	s.take(a, now)
	wait := interval(s.overview.Interval)
	if s.err != nil {
		wait = min(firstWait<<min(s.failures, 8), mostWait)
		s.failures++
		s.retry = now.Add(wait)
	} else {
		s.failures = 0
	}
	s.due.Reset(wait)
}

func (s *session) draw() {
	columns, high := s.terminal.size()
	s.terminal.show(frame(s.screen(s.client.String(), high, time.Now()), columns))
}
