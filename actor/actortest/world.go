package actortest

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/states"
)

// World is the environment of a test of Run. Its methods belong to the test's goroutine.
type World struct {
	t        *testing.T
	cfg      Config
	start    time.Time
	finished bool        // the test function has returned
	over     atomic.Bool // no further use is allowed
	hang     *time.Timer

	sys      *actor.ActorSystem
	fabric   *cmidtest.Fabric
	rt       *rdma.Runtime
	machines []*machine // the first one is rt's
	pollers  []*poller  // of their loops
	probes   []*Probe
	devices  map[string]*plug
	own      map[uint64]string // the bubble's goroutines before there was anything
	panics   *panics
}

// machine is a host with the program that runs on it.
type machine struct {
	host    *cmidtest.Host
	rt      *rdma.Runtime
	stopped atomic.Bool // frozen, or crashed
	dead    bool        // crashed
}

// plug is where a device is, or was.
type plug struct {
	m     *machine
	addrs []string
	in    bool
}

// T is the bubble's test: its Cleanup, which runs before everything is shut down, and its Context
// are inside the bubble. The Context of the test outside must not be used here: its channel would
// belong to the bubble.
func (w *World) T() *testing.T { return w.t }

// System is the actor system. It is shut down at the end.
func (w *World) System() *actor.ActorSystem { return w.sys }

// Runtime is the runtime of the machine that the test begins with, whose device is mem0, 10.0.0.1.
func (w *World) Runtime() *rdma.Runtime { return w.rt }

// CreateID is Runtime's.
func (w *World) CreateID(owner *actor.PID, cfg ...rdma.IDConfig) *actor.PID {
	w.noteProgress(0)
	return w.rt.CreateID(owner, cfg...)
}

// Now is the virtual time.
func (w *World) Now() time.Time { return time.Now() }

// Elapsed is the virtual time since the test function was called.
func (w *World) Elapsed() time.Duration { return time.Since(w.start) }

// Wait lets everything happen that can happen without time passing.
func (w *World) Wait() {
	w.noteProgress(0)
	synctest.Wait()
}

// Advance lets d pass, and everything happen that can happen by then.
func (w *World) Advance(d time.Duration) {
	w.noteProgress(d)
	time.Sleep(d)
	synctest.Wait()
}

// State is an identifier's state on any of the machines: Destroying for one that is gone, or whose
// machine is frozen or has crashed. A PID that no identifier ever had fails the test.
func (w *World) State(id *actor.PID) states.State {
	w.t.Helper()
	if i, ok := w.findID(id); ok {
		return i.State
	}
	if id == nil || !identifier.MatchString(id.Id) {
		w.t.Fatalf("actortest: State: %v is no identifier's PID; identifiers:%s", id, w.listIDs())
	}
	return states.Destroying
}

// identifier matches the runtime's names of identifiers.
var identifier = regexp.MustCompile(`^rdma\$[^/]+/id-[0-9]+$`)

// findID finds an identifier that is not gone.
func (w *World) findID(id *actor.PID) (rdma.IDInfo, bool) {
	w.t.Helper()
	w.Wait()
	for _, i := range w.inspectAll() {
		if i.PID.Equal(id) {
			return i, true
		}
	}
	return rdma.IDInfo{}, false
}

// inspectAll calls Inspect on all machines, and fails the test if a loop does not answer.
func (w *World) inspectAll() []rdma.IDInfo {
	w.t.Helper()
	all, ok := w.tryInspect()
	if !ok {
		w.t.Fatalf("actortest: there is %s", blockedStacks())
	}
	return all
}

// tryInspect calls Inspect on all machines, from any goroutine. Not ok: a loop does not answer.
func (w *World) tryInspect() (all []rdma.IDInfo, ok bool) {
	for _, m := range w.machines {
		if m.stopped.Load() {
			continue
		}
		infos, ok := askLoops(m.rt.Inspect, 100*time.Millisecond)
		if !ok {
			return nil, false
		}
		all = append(all, infos...)
	}
	return all, true
}

// listIDs lists all identifiers that exist, for failures.
func (w *World) listIDs() string {
	infos, ok := w.tryInspect()
	if !ok {
		return " there is " + blockedStacks()
	}
	var all []string
	for _, i := range infos {
		s := fmt.Sprintf("\n\t%s: id %d, %v for %v, %v -> %v", i.PID.Id, i.ID, i.State, i.InState, i.Local, i.Peer)
		if i.Waiting != "" {
			s += ", " + i.Waiting + " waits for its answer"
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return "\n\tnone"
	}
	return strings.Join(all, "")
}

// ExpectPanic announces a panic from now on, with a value whose text contains text: in an actor, an
// rpc handler, a callback on a loop. The test fails if that does not come, and if it comes twice:
// each call of ExpectPanic is good for one. A supervisor that escalates a failure fails as well,
// with the same value. For panics of any number see OnPanic.
func (w *World) ExpectPanic(text string) {
	w.panics.expect(text)
}

// forEver is the virtual time without a call of the World's or a Probe's after which the test is
// taken to wait in vain. While there are connections there are timers: synctest would let time
// pass forever, and go test would end everything after ten minutes.
const forEver = 24 * time.Hour

// noteProgress notes that the test goes on. Most methods that a test calls do so. d is the virtual
// time that the caller may take.
func (w *World) noteProgress(d time.Duration) {
	if w.over.Load() {
		panic(fmt.Sprintf("actortest: the World of %s is used after its test function has ended (w.T().Cleanup runs before that)", w.t.Name()))
	}
	w.hang.Reset(forEver + d)
}

// deadLetterTick is how long Proto.Actor keeps a goroutine for counting dead letters.
const deadLetterTick = time.Millisecond

// newLogger returns a logger to the test's log, with virtual time.
func (w *World) newLogger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Duration(slog.TimeKey, a.Value.Time().Sub(w.start))
			}
			return a
		},
	}))
}

// askLoops calls fn, which asks all loops, and waits no longer than within for one that does not
// answer. If that has happened, askLoops tries again, for Patience in all. Not ok: a loop does not
// answer.
func askLoops[T any](fn func() T, within time.Duration) (v T, ok bool) {
	for begin := time.Now(); time.Since(begin) < Patience; {
		asked := time.Now()
		if v = fn(); time.Since(asked) < within {
			return v, true
		}
	}
	return v, false
}

// blockedStacks returns the stacks of the loops that are busy with a call.
func blockedStacks() string {
	s := "an actor that blocks a loop (rdma.OffLoop is for those that may):"
	for _, stack := range bubbleGoroutines() {
		if strings.Contains(stack, "eventloop.(*callbacks).run(") {
			s += "\n" + stack
		}
	}
	return s
}

// header matches the beginning of the stack trace of a goroutine in a bubble.
var header = regexp.MustCompile(`^goroutine (\d+) .*\[.*synctest bubble (\d+).*\]:`)

// bubbleGoroutines returns the stacks of the caller's bubble, by goroutine.
func bubbleGoroutines() map[uint64]string {
	synctest.Wait()
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := make(map[uint64]string)
	var bubble string
	for i, stack := range bytes.Split(buf, []byte("\n\n")) {
		m := header.FindSubmatch(stack)
		if i == 0 { // the caller
			if m == nil {
				panic(fmt.Sprintf("actortest: no synctest bubble in %q", stack))
			}
			bubble = string(m[2])
		}
		if m != nil && string(m[2]) == bubble {
			id, _ := strconv.ParseUint(string(m[1]), 10, 64)
			all[id] = string(stack)
		}
	}
	return all
}
