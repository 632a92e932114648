package actortest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// A server that is restarted after each request says nothing, and so passes a test in which it has
// to be silent. So what leaves the user's code by a panic, or by runtime.Goexit, fails the test,
// although the program would go on.

// panics is what has panicked, and was expected to.
type panics struct {
	mu       sync.Mutex
	expected []string
	exited   map[string]bool // "goroutine 7": its Goexit was told, by the first whom it has passed
}

// ExpectPanic says that something will panic, or call runtime.Goexit, from now on, with a value
// whose text contains text: an actor, an rpc handler, a callback on a loop. The test fails if that
// does not come, and if it comes twice: each call of ExpectPanic is good for one. A supervisor that
// escalates a failure fails as well, with the same value. For panics of any number see OnPanic.
func (w *World) ExpectPanic(text string) {
	w.panics.mu.Lock()
	defer w.panics.mu.Unlock()
	w.panics.expected = append(w.panics.expected, text)
}

// panicked is told of each panic, and each Goexit, where it happens.
func (w *World) panicked(p eventloop.Panic) {
	if w.cfg.onPanic != nil {
		w.cfg.onPanic(p)
		return
	}
	ps := &w.panics
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if err, ok := p.Value.(error); ok && strings.Contains(err.Error(), "runtime.Goexit") {
		name, _, _ := bytes.Cut(p.Stack, []byte(" ["))
		if ps.exited[string(name)] {
			return // an actor was told of it before its loop, and the innermost actor first
		}
		if ps.exited == nil {
			ps.exited = make(map[string]bool)
		}
		ps.exited[string(name)] = true
	}
	value := fmt.Sprint(p.Value)
	for i, text := range ps.expected {
		if strings.Contains(value, text) {
			ps.expected = slices.Delete(ps.expected, i, i+1)
			return
		}
	}
	w.t.Errorf("actortest: %v has panicked: %s (World.ExpectPanic, if that is right)\n%s", p.Holder, value, p.Stack)
}

// missed is the panics that were expected and have not come.
func (ps *panics) missed() (left []string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, text := range ps.expected {
		left = append(left, fmt.Sprintf("ExpectPanic(%q): no such panic has come", text))
	}
	return left
}

// published is told what the ActorSystem's EventStream is.
func (w *World) published(ev any) {
	if p, ok := ev.(*rdma.Panicked); ok {
		w.panicked(eventloop.Panic{Holder: eventloop.Holder{Kind: p.Kind, Name: p.Name}, Value: p.Value, Stack: p.Stack})
	}
}

// failures is the ActorSystem's log, where Proto.Actor says of each actor that has failed, on its
// goroutine and before any supervisor is asked. What it publishes comes later, and not always.
type failures struct {
	slog.Handler
	w *World
}

// failed is what it says.
const failed = "[ACTOR] Recovering"

func (f failures) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || f.Handler.Enabled(ctx, l)
}

func (f failures) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == failed {
		f.failed(r)
	}
	if !f.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return f.Handler.Handle(ctx, r)
}

func (f failures) failed(r slog.Record) {
	p := eventloop.Panic{Holder: eventloop.Holder{Kind: "actor"}, Stack: debug.Stack()}
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any(); a.Key {
		case "self":
			if pid, ok := v.(*actor.PID); ok {
				p.Holder.Name = pid.Id
			}
		case "reason":
			p.Value = v
		}
		return true
	})
	f.w.panicked(p)
}

func (f failures) WithAttrs(as []slog.Attr) slog.Handler {
	return failures{f.Handler.WithAttrs(as), f.w}
}

func (f failures) WithGroup(name string) slog.Handler {
	return failures{f.Handler.WithGroup(name), f.w}
}
