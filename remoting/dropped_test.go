package remoting_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// A node that ends a connection drops frames that it has not read, and those that arrive before its
// goodbye finds room. Their sender does not take them for received.
func TestDroppedIsUnknown(t *testing.T) {
	const messages = 300
	payload := wrapperspb.Bytes(make([]byte, 60<<10))
	for _, end := range []string{"blocked", "blocked before the goodbye finds room", "shut down"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			var blocked atomic.Bool
			n := open(t, remoting.Config{Expose: everything, Admit: func(remoting.Peer) error {
				if blocked.Load() {
					return errors.New("blocked")
				}
				return nil
			}}, 1)
			defer n.close()
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
			n.spawn("talks", func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
					for range messages {
						ctx.Send(ctx.Sender(), payload)
					}
				}
			})
			host := start(t, remoting.Config{})
			s := meetWith(t, host, n, "sender:1", rdma.IDConfig{MaxMessage: 4 << 20}).introduce()
			record := frame.Record{Kind: frame.KindUser, Target: "slow", Type: "google.protobuf.BytesValue", Body: marshalled(t, payload)}
			others := 2 // frames: the hello, and its confirmation
			sends := func() {
				for range messages {
					s.say(record)
				}
			}
			switch end {
			case "blocked before the goodbye finds room":
				s.retains.Store(true)
				s.say(frame.Record{Kind: frame.KindUser, Target: "talks", Sender: frame.PID{ID: "me"}, Type: record.Type, Body: record.Body})
				others++
				eventually(t, "nothing waits", func() bool { i := n.Peers(); return len(i) == 1 && i[0].Waiting > 0 })
				time.Sleep(50 * time.Millisecond) // the window fills
				blocked.Store(true)
				n.Readmit()
				eventually(t, "it is not blocked", func() bool { i := n.Peers(); return len(i) == 0 || !i[0].Connected })
				sends()
			default:
				sends()
				eventually(t, "the messages do not arrive", func() bool { return n.Peers()[0].Counts.Received > 130 })
				time.Sleep(50 * time.Millisecond) // others fill the window
			}
			if end == "blocked" {
				blocked.Store(true)
				n.Readmit()
			}
			if end == "shut down" {
				ctx, cancel := timeout(300 * time.Millisecond)
				defer cancel()
				_ = n.Shutdown(ctx)
			}
			var c reconnect.Counts
			select {
			case c = <-s.counts:
			case <-time.After(soon):
				t.Fatal("the connection does not end")
			}
			close(hold)
			s.release()
			eventually(t, "messages were neither received nor refused, and their sender takes them for received", func() bool {
				return int64(c.Delivered) <= got.Load()+letters.Load()+int64(others)
			})
			if c.Unknown == 0 {
				t.Errorf("%+v", c)
			}
			ctx, cancel := timeout(soon)
			defer cancel()
			if err := n.Shutdown(ctx); err != nil && end == "blocked" {
				t.Error(err)
			}
		})
	}
}
