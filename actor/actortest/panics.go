package actortest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// A server that is restarted after each request sends nothing, and so passes a test in which it
// has to be silent. So a panic that leaves user code fails the test, although the program would go
// on.

// panics holds the panics that have occurred, and the expected ones.
type panics struct {
	t       *testing.T
	onPanic func(eventloop.Panic) // nil: an unexpected one fails the test

	mu       sync.Mutex
	expected []string
}

// expect announces a panic with text.
func (ps *panics) expect(text string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.expected = append(ps.expected, text)
}

// handlePanic handles a panic where it happens.
func (ps *panics) handlePanic(p eventloop.Panic) {
	if ps.onPanic != nil {
		ps.onPanic(p)
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	value := fmt.Sprint(p.Value)
	for i, text := range ps.expected {
		if strings.Contains(value, text) {
			ps.expected = slices.Delete(ps.expected, i, i+1)
			return
		}
	}
	ps.t.Errorf("actortest: %v has panicked: %s (World.ExpectPanic, if that is right)\n%s", p.Holder, value, p.Stack)
}

// stillExpected returns the panics that were expected and did not come.
func (ps *panics) stillExpected() (left []string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, text := range ps.expected {
		left = append(left, fmt.Sprintf("ExpectPanic(%q): no such panic has come", text))
	}
	return left
}

// handleEvent handles an event of the ActorSystem's EventStream.
func (ps *panics) handleEvent(ev any) {
	if p, ok := ev.(*rdma.Panicked); ok {
		ps.handlePanic(eventloop.Panic{Holder: eventloop.Holder{Kind: p.Kind, Name: p.Name}, Value: p.Value, Stack: p.Stack})
	}
}
