package timing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// script sends nothing: the test answers.
type script struct {
	b     *bench
	asked []string
}

func (s *script) note(i int, what string) { s.asked = append(s.asked, fmt.Sprintf("%s %d", what, i)) }

func (s *script) createID(i int)                       { s.note(i, "create") }
func (s *script) issueCommand(i int, cmd cmid.Command) { s.note(i, fmt.Sprint(cmd.Op())) }
func (s *script) made(i int)                           { s.b.recordFinished(i); s.b.advanceSteps() }

func (s *script) event(ev cmid.Event, ids ...int) {
	for _, i := range ids {
		s.b.handleEvent(i, ev)
	}
}

func (s *script) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.asked, want) {
		t.Fatalf("asked for %q, want %q", s.asked, want)
	}
	s.asked = nil
}

func newScript(n int) *script {
	s := &script{}
	s.b = newBench(Plan{IDs: n, Connect: true}, s, time.Second, func() { s.note(0, "over") })
	s.b.advanceSteps()
	return s
}

func refusal(err error) *cmid.CommandFailed {
	return &cmid.CommandFailed{FailureBase: cmid.FailureBase{Op: "x", Err: err}}
}

// TestSteps: a step starts when all have taken the previous one.
func TestSteps(t *testing.T) {
	s := newScript(2)
	s.want(t, "create 0", "create 1")
	s.made(1)
	s.want(t)
	s.made(0)
	s.want(t, "BindAddr 0", "BindAddr 1")
	s.event(&cmid.Bound{}, 0, 1)
	s.want(t, "ResolveAddr 0", "ResolveAddr 1")
	s.event(&cmid.AddrResolved{}, 1, 1) // a repeated event counts once
	s.want(t)
	s.event(&cmid.AddrResolved{}, 0)
	s.want(t, "ResolveRoute 0", "ResolveRoute 1")
	s.event(&cmid.RouteResolved{}, 0, 1)
	s.want(t, "Connect 0", "Connect 1")
	s.event(&cmid.Established{}, 0, 1)
	s.want(t, "Disconnect 0", "Disconnect 1")
	s.event(&cmid.Disconnected{}, 0, 1)
	s.want(t) // they are destroyed without a request
	s.event(&cmid.Closed{}, 0, 1)
	s.want(t, "over 0")
	if r := s.b.result(); r.Errors != 0 || len(r.Steps) != int(steps)-1 { // all but create qp
		t.Errorf("the result is %+v, want %d steps without errors", r, steps-1)
	}
}

// connected returns a script whose identifiers are to be disconnected.
func connected(n int) *script {
	s := newScript(n)
	for i := range n {
		s.made(i)
	}
	for _, ev := range []cmid.Event{&cmid.Bound{}, &cmid.AddrResolved{}, &cmid.RouteResolved{}} {
		for i := range n {
			s.event(ev, i)
		}
	}
	for i := range n {
		s.event(&cmid.Established{}, i)
	}
	s.asked = nil
	return s
}

// TestEndsItself: actors destroy disconnected identifiers without a request.
func TestEndsItself(t *testing.T) {
	s := connected(2)
	s.event(&cmid.Disconnected{}, 0)
	s.event(&cmid.Closed{}, 0)
	s.event(&cmid.Disconnected{}, 1)
	s.want(t)
	s.event(&cmid.Closed{}, 1)
	s.want(t, "over 0")
	r := s.b.result()
	last := r.Steps[len(r.Steps)-1]
	if r.Errors != 0 || last.Name != "destroy" || last.MinUS <= 0 || last.TotalMS*1000 >= last.MaxMS*1000+1 {
		t.Errorf("the last step is %+v: want the time of each from its Disconnected, and a total from the last one's", last)
	}
}

// TestFailures: an identifier that fails takes no further steps, is destroyed, and counts once.
func TestFailures(t *testing.T) {
	s := newScript(3)
	for i := range 3 {
		s.made(i)
	}
	s.want(t, "create 0", "create 1", "create 2", "BindAddr 0", "BindAddr 1", "BindAddr 2")
	s.event(&cmid.Bound{}, 0)
	s.event(refusal(unix.EADDRINUSE), 1)
	s.event(&cmid.Bound{}, 2)
	s.event(&cmid.AddrError{}, 2)
	s.event(&cmid.AddrError{}, 2)
	s.event(&cmid.AddrResolved{}, 0)
	s.want(t, "ResolveAddr 0", "ResolveAddr 2", "ResolveRoute 0")
	s.event(&cmid.RouteResolved{}, 0)
	s.event(&cmid.Disconnected{Err: unix.ECONNRESET}, 0)
	s.want(t, "Connect 0", "DestroyID 1", "DestroyID 2")
	s.event(&cmid.Closed{}, 0, 1, 2)
	s.want(t, "over 0")
	r := s.b.result()
	if r.Errors != 3 || !errors.Is(r.First, unix.EADDRINUSE) || !strings.Contains(r.First.Error(), "bind addr, identifier 2 of 3") {
		t.Errorf("%d errors, the first %v; want 3, the first that of identifier 2", r.Errors, r.First)
	}

	for what, ev := range map[string]cmid.Event{
		"an unclean end": &cmid.Disconnected{Err: unix.ECONNRESET},
		"closed":         &cmid.Closed{Err: unix.ENODEV},
		"refused":        refusal(unix.EINVAL),
	} {
		s = connected(1)
		s.event(ev, 0)
		s.event(&cmid.Closed{}, 0)
		if r := s.b.result(); r.Errors != 1 || !s.b.over {
			t.Errorf("%s while disconnecting: %d errors, over %t; want 1 and the end", what, r.Errors, s.b.over)
		}
	}
}

// TestStall: without answers the step ends, and the run.
func TestStall(t *testing.T) {
	s := connected(2)
	s.event(&cmid.Disconnected{}, 0)
	s.b.failPending()
	s.want(t, "DestroyID 1")
	s.b.failPending()
	s.want(t, "over 0")
	r := s.b.result()
	if r.Errors != 2 || !strings.Contains(r.First.Error(), "disconnect, identifier 2 of 2: no answer for 1s") {
		t.Errorf("%d errors, the first %v; want two, the first that of the silent disconnect", r.Errors, r.First)
	}
}
