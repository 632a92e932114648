package remoting_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// A frozen peer costs the bytes of the queue, and delays no other peer. The queued messages go out
// in order when the peer continues.
func TestFrozenPeer(t *testing.T) {
	const queue = 1 << 20
	a := start(t, remoting.Config{Queue: queue, MaxMessage: 64 << 10})
	b, c := runBeside(t, a), runBeside(t, a)
	for _, p := range []*process{b, c} {
		if _, err := a.ask(p.pid("echo"), text("x")); err != nil {
			t.Fatal(err)
		}
	}
	b.freeze()
	a.events.stop()
	before := rss(t, os.Getpid())
	padding := make([]byte, 1<<10)
	const n = 100_000
	for range n {
		a.sys.Root.Send(b.pid("echo"), wrapperspb.Bytes(padding))
	}
	if grown := rss(t, os.Getpid()) - before; grown > queue+64<<20 && !raceEnabled {
		t.Errorf("the memory has grown by %d bytes", grown)
	}
	info := infoOf(a, b.name)
	if info.Waiting > queue+queue/8 || info.Waiting < queue/2 {
		t.Errorf("%d bytes wait", info.Waiting)
	}
	if info.Counts.Overflowed == 0 || info.Counts.Sent+info.Counts.Overflowed != n+1 {
		t.Errorf("%+v", info.Counts)
	}
	if a.Writable(b.name) || !a.Writable(c.name) {
		t.Error("it is not seen who takes messages")
	}
	began := time.Now()
	if _, err := a.ask(c.pid("echo"), text("x")); err != nil {
		t.Error(err)
	}
	within(t, "a request to another peer", began, 5*time.Second)
	b.thaw()
	if _, err := a.ask(c.pid("echo"), text("x")); err != nil {
		t.Error(err)
	}
	eventually(t, "it is not written to again", func() bool { return a.Writable(b.name) })
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Error(err)
	}
}

func infoOf(n *node, name string) remoting.PeerInfo {
	for _, i := range n.Peers() {
		if i.Peer.Name == name {
			return i
		}
	}
	return remoting.PeerInfo{}
}

// fill fills the queue of 64 KiB for a peer that is frozen.
func fill(t *testing.T, n *node, to *process) {
	t.Helper()
	to.freeze()
	padding := wrapperspb.Bytes(make([]byte, 512))
	onLoop := n.sys.Root.Spawn(actor.PropsFromFunc(echo, n.rt.OnLoop()))
	since, turns := time.Now(), 0
	eventually(t, "the queue does not get full", func() bool {
		for infoOf(n, to.name).Waiting < 61<<10 { // the link has taken some
			n.sys.Root.Send(to.pid("echo"), padding)
			since, turns = time.Now(), 0
		}
		// its loop has taken turns, and was not slow only
		if _, err := n.ask(onLoop, text("x")); err != nil {
			t.Fatal(err)
		}
		turns++
		return turns > 50 && time.Since(since) > 200*time.Millisecond
	})
	if n.Writable(to.name) {
		t.Error("a full queue is writable")
	}
}

// runBeside runs a process that is killed when the test ends, before n is shut down. n notices that
// first: its Shutdown would report what the process has not received.
func runBeside(t *testing.T, n *node) *process {
	t.Helper()
	name := freeName(t)
	t.Cleanup(func() {
		eventually(t, "the killed process is still connected", func() bool { return !infoOf(n, name).Connected })
	})
	return run(t, name)
}

// full starts a node, and a peer for which nothing has room.
func full(t *testing.T, policy remoting.Overflow) (*node, *process) {
	t.Helper()
	a := start(t, remoting.Config{Queue: 64 << 10, MaxMessage: 64 << 10, Overflow: policy})
	b := runBeside(t, a)
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	fill(t, a, b)
	return a, b
}

var large = wrapperspb.Bytes(make([]byte, 8<<10))

// DeadLetter: futures fail immediately, an actor gets *actor.DeadLetterResponse, without a sender
// there is an event.
func TestOverflowDeadLetter(t *testing.T) {
	a, b := full(t, remoting.DeadLetter)
	if res, err := a.ask(b.pid("echo"), large); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("%v, %v", res, err)
	}
	sender, in := a.probe("sender")
	a.sys.Root.RequestWithCustomSender(b.pid("echo"), large, sender)
	if m := next[*actor.DeadLetterResponse](t, in); !m.Target.Equal(b.pid("echo")) {
		t.Errorf("%v", m)
	}
	a.sys.Root.Send(b.pid("echo"), large)
	await(t, a, func(e *actor.DeadLetterEvent) bool { return e.Sender == nil && e.Message == any(large) })
}

// Fail: futures, and actors, get *Refused.
func TestOverflowFail(t *testing.T) {
	a, b := full(t, remoting.Fail)
	res, err := a.ask(b.pid("echo"), large)
	var refused *remoting.Refused
	if !errors.As(err, &refused) || !errors.Is(err, remoting.ErrQueueFull) || refused.By != a.Name() {
		t.Errorf("%v, %v", res, err)
	}
	sender, in := a.probe("sender")
	a.sys.Root.RequestWithCustomSender(b.pid("echo"), large, sender)
	if m := next[*remoting.Refused](t, in); !errors.Is(m, remoting.ErrQueueFull) || !m.Target.Equal(b.pid("echo")) {
		t.Errorf("%v", m)
	}
	a.sys.Root.Send(b.pid("echo"), large)
	await(t, a, func(e *actor.DeadLetterEvent) bool { return e.Sender == nil && e.Message == any(large) })
}

// Block: senders wait until there is room, but not on a loop.
func TestOverflowBlock(t *testing.T) {
	a, b := full(t, remoting.Block)
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			_, err := a.ask(b.pid("echo"), large) // echo does not answer this, but the next one
			done <- err
		}()
	}
	f := make(chan actor.Future, 1)
	a.spawn("on the loop", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			f <- ctx.RequestFuture(b.pid("echo"), large, soon)
		}
	}, a.rt.OnLoop())
	if res, err := remoting.Result(<-f); !errors.Is(err, remoting.ErrQueueFull) {
		t.Errorf("on a loop: %v, %v", res, err)
	}
	if sent := infoOf(a, b.name).Futures; sent != 0 {
		t.Errorf("%d requests have found room", sent)
	}
	b.thaw()
	eventually(t, "those who wait do not go on", func() bool { return infoOf(a, b.name).Futures == cap(done) })
	b.kill()
	for range cap(done) {
		// sent, or not yet
		var unknown *remoting.Unknown
		if err := <-done; !errors.As(err, &unknown) && !errors.Is(err, actor.ErrDeadLetter) {
			t.Error(err)
		}
	}
}

// A sender that waits for room continues when the peer is gone, and when the node shuts down.
func TestBlockEnds(t *testing.T) {
	for _, how := range []string{"kill", "shutdown"} {
		a := open(t, remoting.Config{Queue: 64 << 10, MaxMessage: 64 << 10, Overflow: remoting.Block, Patience: 300 * time.Millisecond}, 1)
		b := run(t, freeName(t))
		// this may take longer than Patience
		eventually(t, "they are not connected", func() bool {
			_, err := a.ask(b.pid("echo"), text("x"))
			return err == nil
		})
		fill(t, a, b)
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() { a.sys.Root.Send(b.pid("echo"), large) })
		}
		eventually(t, "they do not wait", func() bool { return a.Blocked(b.name) == 4 })
		if how == "kill" {
			b.kill()
			senders.Wait()
			a.end()
			continue
		}
		ctx, cancel := timeout(200 * time.Millisecond)
		if err := a.Shutdown(ctx); err == nil {
			t.Error("a frozen peer has taken everything")
		}
		cancel()
		senders.Wait()
		a.close()
	}
}

// System messages have separate room, also for a peer whose queue is full. Watches without room are
// answered immediately.
func TestSystemReserve(t *testing.T) {
	a, b := full(t, remoting.DeadLetter)
	terminated := make(inbox, 1<<16)
	a.spawn("watcher", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(b.pid("echo"))
		case *wrapperspb.Int32Value:
			for i := range m.Value {
				ctx.Watch(b.pid(fmt.Sprint("nobody-", i)))
			}
		case *actor.Terminated:
			terminated <- m
		}
	})
	silent(t, terminated, 50*time.Millisecond)
	a.sys.Root.Send(actor.NewPID(a.Name(), "watcher"), wrapperspb.Int32(20_000))
	if m := next[*actor.Terminated](t, terminated); m.Why != actor.TerminatedReason_AddressTerminated || m.Who.Id == "echo" {
		t.Errorf("%v", m)
	}
	if n := a.Peers()[0].Watching; n < 100 || n > 20_000 {
		t.Errorf("%d watches found room", n)
	}
}

// If a peer does not read the answers that it waits for, its connection ends, so that it does not
// wait forever.
func TestAnswersWithoutRoom(t *testing.T) {
	a, host := start(t, remoting.Config{Queue: 64 << 10, MaxMessage: 64 << 10, Expose: everything}), open(t, remoting.Config{}, 1)
	defer host.end()
	s := meetWith(t, host, a, "stranger:1", rdma.IDConfig{MaxMessage: 4 << 20, Credits: 2}).introduce()
	defer s.release()
	s.retains.Store(true)
	for range 20 {
		list := make([]frame.Record, 1000)
		for i := range list {
			list[i] = frame.Record{Kind: frame.KindWatch, Target: fmt.Sprint("nobody-", i), Sender: frame.PID{ID: fmt.Sprint("watcher-", i)}}
		}
		s.say(list...)
	}
	if d := await(t, a, anyEvent[*remoting.Disconnected]); !errors.Is(d.Err, remoting.ErrQueueFull) {
		t.Errorf("%v", d)
	}
}

// An actor that is slow costs both nodes bounded memory, whatever mailbox it has, and the others of
// its node answer all the time. Senders that exceed its pace are notified.
func TestSlowSink(t *testing.T) {
	const queue, n = 1 << 20, 100_000
	a := start(t, remoting.Config{Queue: queue, MaxMessage: 64 << 10, Patience: time.Second})
	b := runBeside(t, a)
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	a.events.stop()
	ours, theirs := rss(t, os.Getpid()), rss(t, b.cmd.Process.Pid)
	padding := wrapperspb.Bytes(make([]byte, 1<<10))
	for _, kind := range []string{"default", "goroutines", "bounded"} {
		for range n {
			a.sys.Root.Send(b.pid("slow-"+kind), padding)
		}
		began := time.Now()
		eventually(t, "echo does not answer", func() bool {
			_, err := a.ask(b.pid("echo"), text("x"))
			return err == nil
		})
		within(t, "an answer beside the slow one", began, 5*time.Second)
		if d := rss(t, os.Getpid()) - ours; d > queue+64<<20 && !raceEnabled {
			t.Errorf("%s: the sender's memory has grown by %d bytes", kind, d)
		}
		if d := rss(t, b.cmd.Process.Pid) - theirs; d > 8<<20+64<<20 && !raceEnabled {
			t.Errorf("%s: the receiver's memory has grown by %d bytes", kind, d)
		}
	}
	if c := infoOf(a, b.name).Counts; c.Overflowed == 0 {
		t.Errorf("%+v", c)
	}
}
