package remoting_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Received messages belong to the node: a slow actor gets all of them, although the sending node
// shuts down, and Patience is over. Shutdown returns nil because everything was received.
func TestReceivedOutlivesItsSender(t *testing.T) {
	for _, kind := range []string{"goroutines", "default"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const n = 60
			a, b := open(t, remoting.Config{}, 1), start(t, remoting.Config{Expose: everything, Patience: 4 * time.Second})
			var got atomic.Int64
			b.spawn("slow", func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
					time.Sleep(150 * time.Millisecond)
					got.Add(1)
				}
			}, b.kinds()[kind]...)
			for range n {
				a.sys.Root.Send(b.pid("slow"), wrapperspb.Bytes(make([]byte, 12<<10)))
			}
			a.end()
			eventually(t, "what was received is lost", func() bool { return got.Load() == n })
			eventually(t, "the link stays", func() bool { return len(b.Peers()) == 0 })
		})
	}
}

// If it is unknown whether a peer has received everything, Shutdown returns an error that reports
// that.
func TestShutdownSaysWhatIsUnknown(t *testing.T) {
	a, b := open(t, remoting.Config{}, 1), run(t, freeName(t))
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	b.freeze()
	const n = 10
	for range n {
		a.sys.Root.Send(b.pid("echo"), text("x"))
	}
	ctx, cancel := timeout(time.Second)
	defer cancel()
	err := a.Shutdown(ctx)
	if err == nil {
		t.Fatal("Shutdown returned nil")
	}
	if !strings.Contains(err.Error(), "10 messages were sent to "+b.name+",") {
		t.Error(err)
	}
	d := await(t, a, anyEvent[*remoting.Disconnected])
	if d.Unknown != n || d.Unsent != 0 {
		t.Errorf("%v", d)
	}
	b.thaw()
	a.close()
}

// The messages that peers leave behind are bounded for all together, and one address leaves as much
// to others as it takes. Each message is received, or refused and reported.
func TestLeftoversAreBounded(t *testing.T) {
	const peers, messages, size = 12, 96, 60 << 10
	n := start(t, remoting.Config{Expose: everything})
	var got, letters atomic.Int64
	n.sys.EventStream.Subscribe(func(ev any) {
		if l, ok := ev.(*actor.DeadLetterEvent); ok && l.PID.Id == "slow" {
			letters.Add(1)
		}
	})
	hold := make(chan struct{})
	n.spawn("slow", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			<-hold
			got.Add(1)
		}
	}, n.rt.OffLoop())
	record := frame.Record{
		Kind: frame.KindUser, Target: "slow", Type: "google.protobuf.BytesValue", Body: marshalled(t, wrapperspb.Bytes(make([]byte, size))),
	}
	host := start(t, remoting.Config{})
	for i := range peers {
		s := meetFrom(t, host, n, fmt.Sprint("leaves:", i)).introduce()
		for range messages {
			s.say(record)
		}
		eventually(t, "not all is received", func() bool { peer := n.Peers()[len(n.Peers())-1]; return peer.Counts.Received == messages })
		s.away()
		eventually(t, "it does not leave", func() bool { return n.connected() == 0 })
		if bytes := n.Leftovers(); bytes > remoting.LeftMost/2 {
			t.Fatalf("peers of one address have left %d bytes", bytes)
		}
	}
	if bytes := n.Leftovers(); bytes < remoting.LeftMost/4 {
		t.Errorf("only %d bytes are kept", bytes)
	}
	close(hold)
	eventually(t, "the links stay", func() bool { return len(n.Peers()) == 0 && n.Leftovers() == 0 })
	eventually(t, "messages are neither received nor reported", func() bool {
		_, c := n.Account()
		return int64(c.Refused)+got.Load() == peers*messages && letters.Load()+int64(c.Unreported) >= int64(c.Refused)
	})
	if got.Load() == peers*messages {
		t.Error("nothing was refused")
	}
	t.Logf("%d of %d received", got.Load(), peers*messages)
}
