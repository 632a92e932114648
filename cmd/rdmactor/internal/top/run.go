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
	staleTick = time.Second      // how often the displayed age of old data is refreshed
	// time in which a process that stops itself has surely stopped
	stopsWithin = 100 * time.Millisecond
)

// refreshInterval returns the interval at which the page refreshes its data, according to the page.
func refreshInterval(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return usual
	}
	return time.Duration(max(min(seconds, longest.Seconds()), shortest.Seconds()) * float64(time.Second))
}

// askPage sends a question to the page. A panic becomes an error: the terminal must be restored.
func askPage(ctx context.Context, c *page.Client, q question) (a answer) {
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

// Once writes the current data as text. It asks twice, because rates need two answers.
func Once(ctx context.Context, c *page.Client, q page.Query, w io.Writer) error {
	m := newModel(q)
	for n := range 2 {
		began := time.Now()
		m.storeAnswer(askPage(ctx, c, m.currentQuestion()), time.Now())
		if m.err != nil {
			return m.err
		}
		if n == 1 {
			break
		}
		select {
		// surely another sample
		case <-time.After(time.Until(began.Add(refreshInterval(m.overview.Interval) * 5 / 4))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	lines := append(m.summaryLines(c.String(), time.Now()), m.footLine())
	for _, l := range append(lines, m.tableLines()...) {
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
	asked    int // number of questions sent: only the answer to the last one is
	// shown
	cancel   context.CancelFunc // of the last question
	failures int
	due      *time.Timer // fires for the next question
}

// Run shows the page at a terminal until the user quits, ctx ends, or the terminal is gone. However
// it ends, a panic included, the terminal is restored.
func Run(ctx context.Context, c *page.Client, q page.Query, in, out *os.File) (err error) {
	// net/http logs unsolicited bytes of a server: these would appear in the middle of the screen
	defer log.SetOutput(log.Writer())
	log.SetOutput(io.Discard)
	ctx, cancel := context.WithCancel(ctx)
	s := &session{
		model: newModel(q), client: c, in: in, out: out, answers: make(chan answer), due: time.NewTimer(0), cancel: func() {},
		signals: make(chan os.Signal, 8),
	}
	// The first two end ctx. A second one must not kill the process before the terminal is
	// restored.
	signal.Notify(s.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP)
	defer signal.Stop(s.signals)
	if s.terminal, err = openTerminal(in, out); err != nil {
		cancel()
		return err
	}
	defer func() { s.terminal.close() }()
	defer s.due.Stop()
	defer cancel() // before the terminal is restored: cancels the pending question
	return s.runLoop(ctx)
}

func (s *session) runLoop(ctx context.Context) error {
	stale := time.NewTicker(staleTick)
	defer stale.Stop()
	for {
		s.drawScreen()
		select {
		case <-ctx.Done():
			return nil
		case <-s.terminal.gone:
			return errHungUp
		case <-s.terminal.written:
			return errHungUp
		case sig := <-s.signals:
			if err := s.handleSignal(sig); err != nil {
				return err
			}
		case typed := <-s.terminal.typed:
			before := s.currentQuestion()
			for _, k := range decodeKeys(typed) {
				if k == keySuspend {
					_ = unix.Kill(0, unix.SIGTSTP) // the group includes this process
				} else if s.handleKey(k) {
					return nil
				}
			}
			if s.currentQuestion() != before {
				s.askQuestion(ctx)
			}
		case <-s.due.C:
			s.askQuestion(ctx)
		case a := <-s.answers:
			s.handleAnswer(a)
		case <-stale.C:
		}
	}
}

func (s *session) handleSignal(sig os.Signal) error {
	switch sig {
	case unix.SIGHUP:
		return errHungUp
	case unix.SIGTSTP:
		return s.suspendProcess()
	case unix.SIGCONT: // a shell has used the terminal in between
		s.terminal.close()
		return s.reopenTerminal()
	}
	return nil
}

// suspendProcess restores the terminal, and stops this process if a shell is there to continue it.
func (s *session) suspendProcess() error {
	s.terminal.close()
	sid, err := unix.Getsid(0)
	if err != nil || sid == unix.Getpgrp() { // not a job of a shell
		return s.reopenTerminal()
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
		return s.reopenTerminal()
	}
}

func (s *session) reopenTerminal() error {
	t, err := openTerminal(s.in, s.out)
	if err == nil {
		s.terminal = t
	}
	return err
}

// askQuestion sends the model's current question, and cancels the previous one.
func (s *session) askQuestion(ctx context.Context) {
	s.cancel()
	s.due.Stop()
	_, high := s.terminal.size()
	s.query.Size = max(min(high-s.linesAbove(high, time.Now()), page.MostRows), 1)
	ctx, s.cancel = context.WithCancel(ctx)
	s.asked++
	n, q := s.asked, s.currentQuestion()
	go func() {
		a := askPage(ctx, s.client, q)
		a.n = n
		select {
		case s.answers <- a:
		case <-ctx.Done():
		}
	}()
}

// handleAnswer shows an answer, and schedules the next question.
func (s *session) handleAnswer(a answer) {
	if a.n != s.asked {
		return // the answer to a question canceled a moment ago
	}
	s.cancel()
	now := time.Now()
	s.storeAnswer(a, now)
	wait := refreshInterval(s.overview.Interval)
	if s.err != nil {
		wait = min(firstWait<<min(s.failures, 8), mostWait)
		s.failures++
		s.retry = now.Add(wait)
	} else {
		s.failures = 0
	}
	s.due.Reset(wait)
}

func (s *session) drawScreen() {
	columns, high := s.terminal.size()
	s.width = columns
	s.terminal.queueFrame(encodeFrame(s.screenLines(s.client.String(), high, time.Now()), columns))
}
