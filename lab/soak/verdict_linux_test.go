package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
)

// TestGrowth shows which changes count as growth.
func TestGrowth(t *testing.T) {
	const lived = 30 * time.Minute
	for name, r := range map[string]struct {
		goroutines func(minute int) int
		grown      bool
	}{
		"level":              {func(int) int { return 20 }, false},
		"noise":              {func(m int) int { return 20 + m%3 }, false},
		"one more a minute":  {func(m int) int { return 20 + m }, true},
		"a peak in between":  {func(m int) int { return choose(m > 12 && m < 20, 500, 20) }, false},
		"a peak at the end":  {func(m int) int { return choose(m == 29, 500, 20) }, false},
		"the warm-up":        {func(m int) int { return choose(m < 3, 2, 20) }, false},
		"it falls":           {func(m int) int { return 60 - m }, false},
		"a step in the half": {func(m int) int { return choose(m > 15, 30, 20) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []row
			for m := range 30 {
				rows = append(rows, row{At: time.Duration(m) * time.Minute, footprint: footprint{Goroutines: r.goroutines(m)}})
			}
			g, ok := judgeGrowth(rows, &metrics[2], lived)
			if !ok || g.isGrown() != r.grown {
				t.Errorf("%v, judged %v; grown: %v, want %v", &g, ok, g.isGrown(), r.grown)
			}
		})
	}
	if g, ok := judgeGrowth([]row{{}, {At: lived}}, &metrics[0], lived); ok {
		t.Errorf("two samples were enough for %v", &g)
	}
}

// TestMortalsAreNotJudged checks that a process is judged only if it lives as long as the soak.
func TestMortalsAreNotJudged(t *testing.T) {
	judged := map[string][]side{}
	for _, p := range soakPlans(slow, slow.byDefault()) {
		for _, s := range []side{server, client} {
			if p.isImmortal(s) {
				judged[p.Name] = append(judged[p.Name], s)
			}
		}
	}
	want := map[string][]side{"client killed": {server}, "server killed": {client}, "nobody killed": {server, client}}
	if fmt.Sprint(judged) != fmt.Sprint(want) {
		t.Errorf("judged are %v, want %v", judged, want)
	}
}

// TestFaults checks that the seed alone decides, that only the mortal side is killed, and that cuts
// and stops have the required lengths.
func TestFaults(t *testing.T) {
	for _, p := range soakPlans(slow, slow.byDefault()) {
		make := func(seed uint64) (all []fault) {
			f := faults{rand.New(rand.NewPCG(seed, 0)), p.Kinds, p.Mortal, p.Scale}
			for range 500 {
				next, _ := f.nextFault()
				all = append(all, next)
			}
			return all
		}
		all := make(1)
		if !slices.Equal(all, make(1)) || slices.Equal(all, make(2)) {
			t.Errorf("%s: the seed does not decide, or not alone", p.Name)
		}
		var longest, shortest [2]time.Duration // of stops and of others
		for _, f := range all {
			mortal := f.Kind == kill || f.Kind == vanish
			if mortal && p.isImmortal(f.Side) {
				t.Errorf("%s: %v", p.Name, f)
			}
			if f.Kind != kill {
				i := choose(f.Kind == stop, 0, 1)
				longest[i] = max(longest[i], f.For)
				shortest[i] = choose(shortest[i] == 0, f.For, min(shortest[i], f.For))
			}
		}
		const second = time.Second
		if longest[0] < p.Scale.Gone || longest[1] < 30*second || max(shortest[0], shortest[1]) > second {
			t.Errorf("%s: stops take %v to %v, cuts %v to %v; want up to more than the keepalive's %v, and than 30 s",
				p.Name, shortest[0], longest[0], shortest[1], longest[1], p.Scale.Gone)
		}
	}
}

// TestPayload checks that each byte of a payload counts, at each length.
func TestPayload(t *testing.T) {
	for size := range 40 {
		p := payload(7, size)
		if n, ok := numberOf(p); n != 7 || !ok || len(p) != headSize+size {
			t.Errorf("%d bytes are not what they were: %d, %v", size, n, ok)
		}
		for i := range p {
			p[i] ^= 1
			if _, ok := numberOf(p); ok {
				t.Errorf("byte %d of %d does not count", i, len(p))
			}
			p[i] ^= 1
		}
	}
	if _, ok := numberOf(payload(7, 0)[1:]); ok {
		t.Error("half a head is a payload")
	}
}

// TestErrorsAreSorted checks which errors the faults explain.
func TestErrorsAreSorted(t *testing.T) {
	lost := &rdma.LostError{Err: unix.ETIMEDOUT}
	for _, row := range []struct {
		err      error
		name     string
		expected bool
	}{
		{lost, "the peer is lost", true},
		{&rpc.Error{Code: rpc.CodeUnavailable, Fate: rpc.FateNotSent, Err: lost}, "the peer is lost; not sent", true},
		{&rpc.Error{Code: rpc.CodeDeadline, Fate: rpc.FateUnknown}, "deadline; may have been executed", true},
		{&rpc.Error{Code: rpc.CodeInternal, Fate: rpc.FateAnswered}, "unexpected", false},
		{wrongError("lost: %w", lost), "wrong", false},
		{context.Canceled, "unexpected", false},
		{os.ErrClosed, "unexpected", false},
		{errors.New("something"), "unexpected", false},
	} {
		if name, expected := nameOf(row.err); name != row.name || expected != row.expected {
			t.Errorf("%v is %q, %v; want %q, %v", row.err, name, expected, row.name, row.expected)
		}
	}
}

// TestStuck checks that work that does not end is reported, once, in the process's own time.
func TestStuck(t *testing.T) {
	l := newTally()
	end := l.beginWork("a call", 3*beat)
	l.beginWork("another", 3*beat)(nil)
	var said []string
	for range 5 {
		said = append(said, l.takeSample().Wrong...)
	}
	if len(said) != 1 || said[0] != "it does not end: a call" {
		t.Errorf("it says %q", said)
	}
	end(unix.ECONNRESET)
	if s := l.takeSample(); s.Done["another"] != 1 || s.Errors["a call: reset"] != 1 {
		t.Errorf("it counts %v and %v", s.Done, s.Errors)
	}
}
