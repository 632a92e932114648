package remoting_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// Two processes ask each other's actors, and one leaves in order.
func TestTwoProcesses(t *testing.T) {
	a, b := start(t, remoting.Config{Expose: everything}), run(t, freeName(t))
	a.spawn("echo", echo)
	if got, err := a.ask(b.pid("echo"), text("x")); err != nil || got.(*wrapperspb.StringValue).Value != "x" {
		t.Fatal(got, err)
	}
	got, err := a.ask(b.pid("caller"), a.pid("echo"))
	if err != nil || got.(*wrapperspb.StringValue).Value != "from the caller" {
		t.Fatal(got, err)
	}
	b.leave()
	d := await(t, a, anyEvent[*remoting.Disconnected])
	if !errors.Is(d.Err, remoting.ErrPeerShutdown) || d.Unknown != 0 || d.Peer.Name != b.name {
		t.Errorf("%v", d)
	}
}

// When a process is killed, its watchers are notified immediately, and the futures that wait for it
// fail: their requests may have been carried out.
func TestKill(t *testing.T) {
	const atOnce = 10 * time.Second // on a busy machine, too; nothing here ends by waiting
	a, b := start(t, remoting.Config{Patience: time.Hour}), run(t, freeName(t))
	terminated := make(inbox, 8)
	a.spawn("watcher", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(b.pid("echo"))
		case *actor.Terminated:
			terminated <- m
		}
	}, a.rt.OnLoop())
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	var waits sync.WaitGroup
	for range 100 {
		f := a.sys.Root.RequestFuture(b.pid("mute"), text("?"), soon)
		waits.Go(func() {
			res, err := remoting.Result(f)
			var unknown *remoting.Unknown
			if !errors.As(err, &unknown) || unknown.Target.Id != "mute" {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil { // the others have been sent
		t.Fatal(err)
	}
	began := time.Now()
	b.kill()
	if m := next[*actor.Terminated](t, terminated); m.Why != actor.TerminatedReason_AddressTerminated || !m.Who.Equal(b.pid("echo")) {
		t.Errorf("%v", m)
	}
	within(t, "Terminated after a kill -9", began, atOnce)
	waits.Wait()
	within(t, "the end of 100 futures after a kill -9", began, atOnce)
	d := await(t, a, anyEvent[*remoting.Disconnected])
	if d.Err == nil {
		t.Errorf("%v", d)
	}
	// the node is gone now: a request fails immediately, and was certainly not carried out
	began = time.Now()
	if res, err := a.ask(b.pid("echo"), text("x")); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("%v, %v", res, err)
	}
	within(t, "a request to a node that is not there", began, atOnce)
}

// Messages that are sent while a node is gone go to its next process, in order. Its watchers watch
// anew, and nothing is delivered twice.
func TestRestart(t *testing.T) {
	name := freeName(t)
	a, b := start(t, remoting.Config{Patience: soon}), run(t, name)
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	first := await(t, a, anyEvent[*remoting.Connected])
	b.kill()
	await(t, a, anyEvent[*remoting.Disconnected])
	const n = 1000
	for i := range n {
		a.sys.Root.Send(b.pid("order"), text(fmt.Sprint("a ", i+1)))
	}
	b = run(t, name)
	second := await(t, a, func(c *remoting.Connected) bool { return c.Peer.Incarnation != first.Peer.Incarnation })
	if second.Peer.Incarnation < first.Peer.Incarnation || second.Peer.Member == first.Peer.Member {
		t.Errorf("%+v after %+v", second, first)
	}
	got, err := a.ask(b.pid("order"), wrapperspb.Bool(true))
	if want := fmt.Sprint(n, " received, 0 wrong"); err != nil || got.(*wrapperspb.StringValue).Value != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	peers, c := a.Account()
	for i := range peers {
		c.Add(peers[i].Counts)
	}
	if c.DeadLetters != 0 || c.Sent != n+2 {
		t.Errorf("%+v", c)
	}
}

// A node restarts again and again under a sender's hands. Each time some messages are lost, and
// none comes twice, or out of order.
func TestRestartsUnderLoad(t *testing.T) {
	name := freeName(t)
	a, b := start(t, remoting.Config{}), run(t, name)
	target := b.pid("order")
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a.sys.Root.Send(target, text(fmt.Sprint(s, " ", i)))
				time.Sleep(20 * time.Microsecond)
			}
		})
	}
	for range 3 {
		time.Sleep(50 * time.Millisecond)
		b.kill()
		b = run(t, name)
		eventually(t, "it is not connected again", func() bool {
			_, err := a.ask(b.pid("echo"), text("x"))
			return err == nil
		})
	}
	close(stop)
	senders.Wait()
	got, err := a.ask(b.pid("order"), wrapperspb.Bool(true))
	if err != nil {
		t.Fatal(err)
	}
	var received, wrong int
	if _, err := fmt.Sscanf(got.(*wrapperspb.StringValue).Value, "%d received, %d wrong", &received, &wrong); err != nil || received == 0 || wrong != 0 {
		t.Errorf("%v: %v", got, err)
	}
	t.Log(got, a.Peers()[0].Counts)
}
