package remoting_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
)

// A peer breaks the protocol and is gone in the same moment, with messages under way, which the
// node counts as unknown.
func TestTornInTheMiddle(t *testing.T) {
	const n = 10
	a, host := start(t, remoting.Config{}), open(t, remoting.Config{}, 1)
	defer host.end()
	s := meetFrom(t, host, a, "stranger:1").introduce()
	eventually(t, "not open", func() bool { return len(a.Peers()) == 1 && a.Peers()[0].Connected })
	theirs, ours := s.block(host), s.block(a)

	theirs.enter()
	for range n {
		a.sys.Root.Send(actor.NewPID(s.name, "x"), text("x"))
	}
	eventually(t, "not sent", func() bool {
		i := a.Peers()[0]
		return i.Waiting == 0 && i.Counts.Sent == n
	})
	ours.enter()
	s.send([]byte("GET / HTTP/1.1\r\n\r\n"))
	s.away()
	theirs.leave()
	select {
	case <-s.down:
	case <-time.After(soon):
		t.Fatal("the stranger is not gone")
	}
	ours.leave()
	if d := await(t, a, anyEvent[*remoting.Disconnected]); d.Unknown != n {
		t.Errorf("%v, want %d unknown", d, n)
	}
}

// blocker blocks a node's loop.
type blocker struct {
	enter, leave func()
}

func (s *stranger) block(n *node) blocker {
	in, out := make(chan struct{}), make(chan struct{})
	pid := n.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*blocker); ok {
			in <- struct{}{}
			<-out
		}
	}, n.rt.OnLoop()))
	return blocker{
		enter: func() { n.sys.Root.Send(pid, &blocker{}); <-in },
		leave: func() { close(out) },
	}
}
