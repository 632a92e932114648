package remoting_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Two nodes that shut down at the same time have received what the other one has sent: neither
// reports messages of which that is not known.
func TestBothLeave(t *testing.T) {
	for i := range 100 {
		a, b := open(t, remoting.Config{Expose: everything}, 1), open(t, remoting.Config{Expose: everything}, 1)
		a.spawn("sink", func(actor.Context) {})
		b.spawn("echo", echo)
		if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for _, end := range [][2]*node{{a, b}, {b, a}} {
			both.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), soon)
				defer cancel()
				if end[0] == b { // at each point of the other one's end
					time.Sleep(time.Duration(i) * 20 * time.Microsecond)
				}
				for range 5 {
					end[0].sys.Root.Send(end[1].pid("sink"), text("last"))
				}
				if err := end[0].Shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		a.close()
		b.close()
	}
}

// A peer says goodbye while a node shuts down, and takes its time over what it was sent, or does
// not take all: Shutdown waits for its answer, and returns an error that reports what was not sent.
func TestLeavesWhileItReads(t *testing.T) {
	for _, most := range []int{10, 300} { // fewer and more messages than it has room for
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			n := open(t, remoting.Config{Expose: everything}, 1)
			defer n.close()
			talked := make(chan struct{})
			n.spawn("talks", func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					defer close(talked)
					for range most {
						ctx.Send(ctx.Sender(), wrapperspb.Bytes(make([]byte, 60<<10)))
					}
				}
			})
			s := meet(t, n, "leaves:1").introduce()
			s.retains.Store(true)
			s.say(frame.Record{
				Kind: frame.KindUser, Target: "talks", Sender: frame.PID{ID: "me"}, Type: "google.protobuf.StringValue", Body: marshalled(t, text("x")),
			})
			<-talked // what is sent during Shutdown is not accepted
			ctx, cancel := timeout(soon)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- n.Shutdown(ctx) }()
			eventually(t, "it does not shut down", func() bool {
				_, err := n.ask(actor.NewPID("another:1", "x"), text("x"))
				return errors.Is(err, actor.ErrDeadLetter)
			})
			time.Sleep(100 * time.Millisecond) // its links have heard of it
			s.say(frame.Record{Kind: frame.KindGoodbye, Code: frame.GoodbyeShutdown, Reason: "it leaves"})
			if most == 10 {
				time.Sleep(6 * time.Second) // longer than an orderly end has elsewhere
			}
			time.Sleep(100 * time.Millisecond) // the node has read it
			s.release()
			err := <-ended
			if want := "not all was sent to leaves:1: "; most == 10 && err != nil || most != 10 && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A peer's goodbye arrives when Shutdown has begun and the link has not heard of it. Shutdown waits
// until it is known what the peer has received, as if the goodbye came later, and its error counts
// the messages of which that remains unknown.
func TestGoodbyeBeforeLeave(t *testing.T) {
	for _, c := range []struct {
		name    string
		confirm bool // the peer receives what it was sent
		want    string
	}{
		{"received", true, ""},
		{"not received", false, "10 messages were sent to leaves:1, and it is not known whether they were received: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := open(t, remoting.Config{Expose: everything}, 1)
			defer n.close()
			n.spawn("talks", func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					for range 10 {
						ctx.Send(ctx.Sender(), wrapperspb.Bytes(make([]byte, 60<<10)))
					}
				}
			})
			heard := make(chan struct{})
			n.spawn("sink", func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					close(heard)
				}
			})
			s := meet(t, n, "leaves:1").introduce()
			s.retains.Store(true)
			to := func(target string) frame.Record {
				return frame.Record{Kind: frame.KindUser, Target: target, Sender: frame.PID{ID: "me"}, Type: "google.protobuf.StringValue", Body: marshalled(t, text("x"))}
			}
			s.say(to("talks"))
			for got := 0; got < 10; got++ {
				s.hears(frame.KindUser)
			}
			n.BeginShutdown()
			s.say(frame.Record{Kind: frame.KindGoodbye, Code: frame.GoodbyeShutdown, Reason: "it leaves"})
			s.say(to("sink")) // shows that the link has read the goodbye
			select {
			case <-heard:
			case err := <-s.down:
				t.Fatalf("the goodbye ends the connection: %v", err)
			case <-time.After(soon):
				t.Fatal("what follows the goodbye is not read")
			}
			bound := soon
			if !c.confirm {
				bound = time.Second
			}
			ctx, cancel := timeout(bound)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- n.Shutdown(ctx) }()
			if c.confirm {
				s.release()
			}
			switch err := <-ended; {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("Shutdown returns %v, want %q", err, c.want)
			}
			s.release()
			if e := await(t, n, anyEvent[*remoting.Disconnected]); (e.Unknown == 0) != c.confirm {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A connection is lost when Shutdown has begun and the link has not heard of it: the error counts
// the messages that were not confirmed.
func TestLostBeforeLeave(t *testing.T) {
	n := open(t, remoting.Config{Expose: everything}, 1)
	defer n.close()
	n.spawn("talks", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Send(ctx.Sender(), text("y"))
		}
	})
	s := meet(t, n, "crashes:1").introduce()
	s.retains.Store(true)
	s.say(frame.Record{Kind: frame.KindUser, Target: "talks", Sender: frame.PID{ID: "me"}, Type: "google.protobuf.StringValue", Body: marshalled(t, text("x"))})
	s.hears(frame.KindUser)
	n.BeginShutdown()
	s.sys.Root.Send(s.link, &rdma.DestroyID{})
	if e := await(t, n, anyEvent[*remoting.Disconnected]); e.Unknown != 1 {
		t.Fatalf("%+v", e)
	}
	s.release()
	ctx, cancel := timeout(soon)
	defer cancel()
	want := "1 messages were sent to crashes:1, and it is not known whether they were received: "
	if err := n.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Shutdown returns %v, want %q", err, want)
	}
}

// Gossip and the like that a peer has not received is in *Disconnected, and is no error of
// Shutdown.
func TestShutdownIgnoresUpkeep(t *testing.T) {
	for _, c := range []struct {
		name           string
		upkeep, others int
	}{{"upkeep", 3, 0}, {"both", 3, 2}} {
		for _, waits := range []int{0, 60} { // messages that have no room
			t.Run(fmt.Sprint(c.name, ", ", waits, " wait"), func(t *testing.T) {
				t.Parallel()
				n := open(t, remoting.Config{Expose: everything}, 1)
				defer n.close()
				talked := make(chan struct{})
				n.spawn("talks", func(ctx actor.Context) {
					if _, ok := ctx.Message().(*wrapperspb.StringValue); !ok {
						return
					}
					defer close(talked)
					for range c.upkeep + waits {
						ctx.Send(ctx.Sender(), &actor.Touched{Who: actor.NewPID("x", strings.Repeat("x", 60<<10))})
					}
					for range c.others {
						ctx.Send(ctx.Sender(), text("y"))
					}
				})
				s := meet(t, n, "takes nothing:1").introduce()
				s.retains.Store(true)
				s.say(frame.Record{
					Kind: frame.KindUser, Target: "talks", Sender: frame.PID{ID: "me"}, Type: "google.protobuf.StringValue", Body: marshalled(t, text("x")),
				})
				<-talked
				ctx, cancel := timeout(time.Second)
				defer cancel()
				if err := n.Shutdown(ctx); (err == nil) != (c.others == 0) {
					t.Errorf("Shutdown returns %v", err)
				}
				s.release()
				if e := await(t, n, anyEvent[*remoting.Disconnected]); e.Unknown+e.Unsent != c.others || e.Upkeep != c.upkeep+waits {
					t.Errorf("%+v", e)
				}
			})
		}
	}
}
