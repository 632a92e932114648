package remoting_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// door is a Config.Admit that a test opens and closes.
type door struct {
	closed atomic.Bool
	asked  atomic.Int64
}

var errClosed = errors.New("the door is closed")

func (d *door) admit(remoting.Peer) error {
	d.asked.Add(1)
	if d.closed.Load() {
		return errClosed
	}
	return nil
}

// A peer that is no longer admitted loses its connection, with the reason, and a request under way
// fails. It cannot connect until it is admitted again.
func TestReadmit(t *testing.T) {
	d := &door{}
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything, Admit: d.admit})
	got := make(chan struct{}, 1)
	b.spawn("echo", echo)
	b.spawn("mute", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			got <- struct{}{}
		}
	})
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	b.Readmit()
	eventually(t, "Admit is not asked again", func() bool { return d.asked.Load() == 2 })
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Errorf("who is still admitted gets %v", err)
	}

	waiting := a.sys.Root.RequestFuture(b.pid("mute"), text("x"), soon)
	<-got
	d.closed.Store(true)
	b.Readmit()
	_, err := remoting.Result(waiting)
	var unknown *remoting.Unknown
	if !errors.As(err, &unknown) || !errors.Is(err, remoting.ErrBlocked) {
		t.Errorf("a request under way gets %v", err)
	}
	isBlocked := func(d *remoting.Disconnected) bool {
		return errors.Is(d.Err, remoting.ErrBlocked) && strings.Contains(d.Err.Error(), errClosed.Error())
	}
	await(t, a, isBlocked)
	if e := await(t, b, isBlocked); !errors.Is(e.Err, errClosed) {
		t.Errorf("the side that refuses reports %v", e.Err)
	}

	// the first dials may come too soon
	for before := d.asked.Load(); d.asked.Load() == before; time.Sleep(time.Millisecond) {
		if _, err := a.ask(b.pid("echo"), text("x")); !errors.Is(err, actor.ErrDeadLetter) {
			t.Fatalf("who is not admitted gets %v", err)
		}
	}
	if e := await(t, a, anyEvent[*remoting.NotAdmitted]); !errors.Is(e.Err, remoting.ErrBlocked) || errors.Is(e.Err, errClosed) || e.Peer.Name != b.Name() {
		t.Errorf("who is not admitted is notified of %+v", e)
	}
	if e := await(t, b, anyEvent[*remoting.NotAdmitted]); !errors.Is(e.Err, errClosed) || e.Peer.Name != a.Name() || e.Peer.Member != a.sys.ID {
		t.Errorf("who does not admit is notified of %+v", e)
	}
	d.closed.Store(false)
	eventually(t, "it is not admitted again", func() bool {
		_, err := a.ask(b.pid("echo"), text("x"))
		return err == nil
	})
}

// Readmit while a peer is just being admitted is not forgotten.
func TestReadmitWhileAdmitting(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan error)
	admit := func(remoting.Peer) error {
		asked <- struct{}{}
		return <-answer
	}
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything, Admit: admit})
	b.spawn("echo", echo)
	a.sys.Root.Send(b.pid("echo"), text("x"))
	<-asked
	b.Readmit()
	eventually(t, "the link does not run", func() bool { return len(b.Peers()) == 1 })
	answer <- nil // of the time before
	<-asked
	answer <- errClosed
	await(t, a, func(d *remoting.Disconnected) bool { return errors.Is(d.Err, remoting.ErrBlocked) })
}

// Readmit is not forgotten while Admit has not answered for an earlier connection.
func TestReadmitAfterAnEarlierConnection(t *testing.T) {
	asked, answer := make(chan struct{}, 8), make(chan struct{})
	var calls atomic.Int64
	n := start(t, remoting.Config{Admit: func(remoting.Peer) error {
		first := calls.Add(1) == 1
		asked <- struct{}{}
		if first {
			<-answer
		}
		return nil
	}})
	const name = "again:1"
	s := meet(t, n, name).connect()
	s.hello()
	<-asked
	n.sys.Root.Send(actor.NewPID(name, "x"), text("keeps the link"))
	s.away()
	meetAgain(t, n, name)
	eventually(t, "it is not admitted", func() bool { return infoOf(n, name).Connected })
	for len(asked) > 0 {
		<-asked
	}
	n.Readmit()
	close(answer)
	select {
	case <-asked:
	case <-time.After(soon):
		t.Error("Admit is not asked again")
	}
}
