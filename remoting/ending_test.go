package remoting_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// A link that was stopped from outside never reports a request that was sent as not sent.
func TestStoppedLink(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("silent", func(actor.Context) {})
	b.spawn("echo", echo)
	f := a.sys.Root.RequestFuture(b.pid("silent"), text("?"), soon)
	allowed(t, a, b.pid("echo"))
	for _, bucket := range a.sys.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, name := range bucket.Keys() {
			if strings.HasSuffix(name, "/link-1") {
				a.sys.Root.Stop(a.pid(name))
			}
		}
	}
	res, err := remoting.Result(f)
	var unknown *remoting.Unknown
	if !errors.As(err, &unknown) {
		t.Errorf("%v, %v", res, err)
	}
	eventually(t, "no new link", func() bool { _, err := a.ask(b.pid("echo"), text("?")); return err == nil })
}

// A connection that has never been one to send over is not disconnected when the node shuts down.
func TestShutdownBeforeConnected(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan bool), make(chan bool)
	a, b := open(t, remoting.Config{}, 1), start(t, remoting.Config{Admit: func(remoting.Peer) error {
		close(asked)
		<-answer
		return errors.New("too late")
	}})
	a.sys.Root.Send(b.pid("x"), text("?"))
	<-asked
	a.end()
	close(answer)
	a.events.mu.Lock()
	defer a.events.mu.Unlock()
	for _, ev := range a.events.list {
		if e, ok := ev.(*remoting.Disconnected); ok {
			t.Error(e)
		}
	}
}

// Two nodes that shut down at the same time do not wait for each other's end of the connection: a
// goodbye that crosses the node's own ends it.
func TestGoodbyesThatCross(t *testing.T) {
	n := open(t, remoting.Config{}, 1)
	s := meet(t, n, "leaver:1").introduce()
	await(t, n, anyEvent[*remoting.Connected])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.Shutdown(ctx) }()
	s.hears(frame.KindGoodbye)
	s.say(frame.Record{Kind: frame.KindGoodbye, Code: frame.GoodbyeShutdown, Reason: "bye"})
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(soon):
		t.Error("Shutdown waits")
		cancel()
		<-ended
	}
	n.close()
}
