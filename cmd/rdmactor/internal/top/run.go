package top

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
	"github.com/rdmactor/rdmactor/internal/plain"
)

const (
	usual    = time.Second // between two answers
	shortest = 100 * time.Millisecond
	longest  = time.Minute
	retry    = 2 * time.Second // after an error
)

// interval returns the interval at which the page refreshes its data, according to the page.
func interval(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return usual
	}
	return time.Duration(max(min(seconds, longest.Seconds()), shortest.Seconds()) * float64(time.Second))
}

// sorts are the fields of the table's columns.
var sorts = []string{
	"id", "state", "in_state_seconds", "peer", "local", "queued_messages", "waits_for_seconds", "sent_messages",
	"received_messages", "device", "loop", "credits_send_messages", "memory_bytes", "owner",
}

// name returns an identifier's name: its number or, if it has none yet, its PID's id.
func name(r *page.Row) string {
	if r.ID == 0 {
		return r.PID
	}
	return strconv.FormatUint(r.ID, 10)
}

// view is what is shown: the last answers of a page.
type view struct {
	query    page.Query
	overview page.Overview
	ids      page.IDs
	rates    rates
	got      time.Time // when the last answer arrived; zero: none yet
	err      error     // nil: the last request was answered
}

func newView(q page.Query) *view {
	if q.Sort == "" {
		q.Sort = sorts[0]
	}
	q.Page = 1
	return &view{query: q}
}

// ask asks the page.
func (v *view) ask(ctx context.Context, c *page.Client) {
	overview, err := c.Overview(ctx)
	var ids page.IDs
	if err == nil {
		ids, err = c.IDs(ctx, v.query)
	}
	v.take(overview, ids, err, time.Now())
}

// take stores an answer. After an error the previous data stay.
func (v *view) take(overview page.Overview, ids page.IDs, err error, now time.Time) {
	if v.err = err; err != nil {
		return
	}
	v.got, v.overview, v.ids = now, overview, ids
	v.rates.take(&overview, &ids)
}

// Once writes the current data as text. It asks twice, because rates need two answers.
func Once(ctx context.Context, c *page.Client, q page.Query, w io.Writer) error {
	v := newView(q)
	for n := range 2 {
		began := time.Now()
		if v.ask(ctx, c); v.err != nil {
			return v.err
		}
		if n == 1 {
			break
		}
		select {
		// surely another sample
		case <-time.After(time.Until(began.Add(interval(v.overview.Interval) * 5 / 4))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	lines := append(v.summary(c.String(), time.Now()), v.foot())
	for _, l := range append(lines, v.rows()...) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(l.text, " ")); err != nil {
			return err
		}
	}
	return nil
}

// Run shows the page at a terminal until ctx ends. It changes no modes of the terminal.
func Run(ctx context.Context, c *page.Client, q page.Query, out *os.File) error {
	// net/http logs unsolicited bytes of a server: these would appear in the middle of the screen
	defer log.SetOutput(log.Writer())
	log.SetOutput(io.Discard)
	v := newView(q)
	begin := "\x1b[2J" // an empty screen
	for {
		columns, height := size(out)
		v.query.Size = v.room(height)
		v.ask(ctx, c)
		if ctx.Err() == nil {
			_, err := io.WriteString(out, begin+frame(v.screen(c.String(), height, time.Now()), columns))
			if err != nil {
				return err
			}
			begin = ""
		}
		wait := interval(v.overview.Interval)
		if v.err != nil {
			wait = retry
		}
		select {
		case <-ctx.Done():
			_, err := io.WriteString(out, "\n")
			return err
		case <-time.After(wait):
		}
	}
}

// size returns the number of a terminal's columns and lines.
func size(out *os.File) (columns, lines int) {
	const largest = 1000
	columns, lines, err := term.GetSize(int(out.Fd()))
	if err != nil || columns < 1 || lines < 1 {
		return 80, 24
	}
	return min(columns, largest), min(lines, largest)
}

// frame encodes the lines for a terminal. Their text is plain, so only the styles are escape
// sequences.
func frame(lines []line, columns int) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for n, l := range lines {
		if n > 0 {
			b.WriteString("\n")
		}
		if l.style != normal {
			b.WriteString("\x1b[" + string(l.style) + "m")
		}
		b.WriteString(plain.Fit(l.text, columns))
		if l.style != normal {
			b.WriteString("\x1b[0m")
		}
	}
	b.WriteString("\x1b[J")
	return b.String()
}
