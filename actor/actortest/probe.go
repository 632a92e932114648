package actortest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Patience is the virtual time that Next waits.
const Patience = time.Minute

// Probe is an actor on the World's loop that keeps its messages until the test asks for them. Its
// methods, and Next, belong to the test's goroutine.
type Probe struct {
	w       *World
	pid     *actor.PID
	arrived chan struct{} // has a token when a message has come since the queue was looked at
	last    message       // what Next has returned

	mu      sync.Mutex
	queue   []message
	discard bool // the test is over

	ignores bool // its failures need not be read; the test's goroutine's
}

// Probe spawns a Probe. It is stopped at the end; System().Root.Stop ends it before.
func (w *World) Probe() *Probe {
	w.noteProgress(0)
	p := &Probe{w: w, arrived: make(chan struct{}, 1)}
	p.pid = w.sys.Root.Spawn(actor.PropsFromFunc(p.receiveMessage, w.rt.OnLoop()))
	w.probes = append(w.probes, p)
	return p
}

// receiveMessage runs on the loop.
func (p *Probe) receiveMessage(ctx actor.Context) {
	msg := ctx.Message()
	switch msg.(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.discard {
		return
	}
	if m, ok := msg.(*rdma.Received); ok {
		m.Retain()
	}
	p.queue = append(p.queue, message{msg, ctx.Sender()})
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}

// PID is the Probe's: an owner, or the sender of commands.
func (p *Probe) PID() *actor.PID { return p.pid }

// Request sends msg with the Probe as its sender, which gets the answer.
func (p *Probe) Request(to *actor.PID, msg any) { p.w.sys.Root.RequestWithCustomSender(to, msg, p.pid) }

// Send sends msg without a sender: an identifier answers its owner.
func (p *Probe) Send(to *actor.PID, msg any) { p.w.sys.Root.Send(to, msg) }

// Sender is the sender of the message that Next returned last: for an event the identifier, for a
// ConnectRequest the new one.
func (p *Probe) Sender() *actor.PID { return p.last.sender }

// Next is the next message that the Probe got, which has to be a T (a type such as
// *rdma.Established, or an interface such as rdma.Failure, or any): the test fails if it is
// anything else, or if none comes within Patience. A *rdma.Received is valid until the next Next
// of this Probe.
func Next[T any](p *Probe) T {
	p.w.t.Helper()
	p.releaseLast()
	want := typeName(reflect.TypeFor[T]())
	if !p.awaitMessage(Patience) {
		p.w.t.Fatalf("actortest: Next: nothing came within %v, want %s; probes:%s\nidentifiers:%s", Patience, want, p.w.listUnread(), p.w.listIDs())
	}
	p.mu.Lock()
	p.last = p.queue[0]
	p.queue[0] = message{}
	p.queue = p.queue[1:]
	p.mu.Unlock()
	m, ok := p.last.msg.(T)
	if !ok {
		p.w.t.Fatalf("actortest: Next: got %s, want %s%s", p.last, want, p.listQueued())
	}
	return m
}

// Silent lets d pass, and fails the test if the Probe has got anything by then that Next has not
// returned.
func (p *Probe) Silent(d time.Duration) {
	p.w.t.Helper()
	from := p.w.Elapsed()
	if p.awaitMessage(d) {
		p.mu.Lock()
		first := p.queue[0]
		p.mu.Unlock()
		p.w.t.Fatalf("actortest: Silent(%v): after %v got %s", d, p.w.Elapsed()-from, first)
	}
}

// awaitMessage waits until there is a message, and whatever comes with it has happened. Not ok: d
// has passed.
func (p *Probe) awaitMessage(d time.Duration) (ok bool) {
	p.w.noteProgress(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		synctest.Wait()
		p.mu.Lock()
		n := len(p.queue)
		p.mu.Unlock()
		if n > 0 {
			return true
		}
		select {
		case <-p.arrived:
		case <-timer.C:
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.queue) > 0
		}
	}
}

// releaseLast releases the message that Next has returned last.
func (p *Probe) releaseLast() {
	if m, ok := p.last.msg.(*rdma.Received); ok {
		m.Release()
	}
	p.last = message{}
}

// releaseAll releases everything, including later messages.
func (p *Probe) releaseAll() {
	p.releaseLast()
	p.mu.Lock()
	left := p.queue
	p.queue, p.discard = nil, true
	p.mu.Unlock()
	for _, m := range left {
		p.last = m
		p.releaseLast()
	}
}

// listQueued lists the messages that wait after an unexpected one.
func (p *Probe) listQueued() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return ""
	}
	return "; behind it:" + listMessages(p.queue)
}

// listUnread lists the unread messages of Probes.
func (w *World) listUnread() (all string) {
	for _, p := range w.probes {
		p.mu.Lock()
		all += fmt.Sprintf("\n\t%s: %d unread", p.pid.Id, len(p.queue)) + strings.ReplaceAll(listMessages(p.queue), "\n", "\n\t")
		p.mu.Unlock()
	}
	return all
}

// unreadFailures lists the failures among it, which a test has to look at.
func (w *World) unreadFailures() (all []string) {
	for _, p := range w.probes {
		p.mu.Lock()
		failures := slices.DeleteFunc(slices.Clone(p.queue), func(m message) bool { _, ok := m.msg.(rdma.Failure); return !ok })
		p.mu.Unlock()
		if len(failures) > 0 && !p.ignores {
			all = append(all, fmt.Sprintf("%s got %d failures that Next has not returned (Probe.Ignore, if that is right):%s",
				p.pid.Id, len(failures), listMessages(failures)))
		}
	}
	return all
}

// Ignore permits that the Probe's messages stay unread. Otherwise a test fails if a failure has
// not been read at its end: it may have gone another way than it was meant to.
func (p *Probe) Ignore() { p.ignores = true }
