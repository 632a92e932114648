package reconnect_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// A connection that breaks is made again, and messages sent in between go out in order.
func TestComesBack(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		r.spawn(reconnect.Config{})
		conn, up := r.accept()
		if up.Generation != 1 {
			t.Errorf("the first generation is %d", up.Generation)
		}
		r.send(1, "one")
		r.hears("one")
		r.server.Request(conn, rdma.NewSend([]byte("welcome")))
		if m := actortest.Next[*rdma.Received](r.owner); string(m.Data) != "welcome" || m.ID != up.Established.ID {
			t.Errorf("got %q of identifier %d", m.Data, m.ID)
		} else if !r.owner.Sender().Equal(r.link) {
			t.Errorf("it comes from %v", r.owner.Sender())
		}
		r.released()
		r.server.Request(conn, rdma.NewSend([]byte("I have consumed it")))
		actortest.Next[*rdma.Received](r.owner)
		s := actortest.Next[*reconnect.Settled](r.owner)
		if len(s.Fates) != 1 || s.Fates[0] != (reconnect.Fate{Tag: 1, Outcome: reconnect.Delivered}) {
			t.Errorf("settled: %+v", s)
		}
		r.Disconnect(conn)
		down := actortest.Next[*reconnect.Down](r.owner)
		if !down.WasUp || down.Generation != 1 ||
			down.NextTry.Before(r.Now()) || down.NextTry.Sub(r.Now()) > 100*time.Millisecond {
			t.Errorf("got %+v", down)
		}
		r.send(2, "two")
		r.send(3, "three")
		r.ended()
		_, up = r.accept()
		if up.Generation != 2 {
			t.Errorf("the second generation is %d", up.Generation)
		}
		r.hears("two", "three")
		r.released()
		if c := r.finish(); c.Err != nil || c.Counts != (reconnect.Counts{Delivered: 3}) {
			t.Errorf("closed: %+v", c)
		}
	})
}

// There is no listener at first.
func TestWaitsForItsPeer(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.spawn(reconnect.Config{})
		r.send(1, "hello")
		for i := range 5 {
			down := actortest.Next[*reconnect.Down](r.owner)
			if down.WasUp || i > 0 && down.Waiting != 1 || len(down.Fates) > 0 || down.Generation != uint64(i+1) {
				t.Errorf("got %+v", down)
			}
		}
		r.serve()
		_, up := r.accept()
		r.hears("hello")
		r.released()
		if up.Generation < 6 {
			t.Errorf("up in generation %d", up.Generation)
		}
		r.finish()
	})
}

// Refused messages, with the reasons.
func TestRefusals(t *testing.T) {
	inRig(t, func(r *rig) {
		r.spawn(reconnect.Config{Queue: 2})
		actortest.Next[*reconnect.Down](r.owner)
		r.send(1, "a")
		r.send(2, "b")
		r.send(3, "c")
		f := actortest.Next[*reconnect.Refused](r.owner)
		if f.Tag != 3 || f.Bytes != 1 || !errors.Is(f, rdma.ErrQueueFull) || !errors.Is(f, unix.ENOBUFS) {
			t.Errorf("%+v", f)
		}
		r.owner.Send(r.link, &reconnect.Send{Tag: 4})
		if f := actortest.Next[*reconnect.Refused](r.owner); f.Tag != 4 || !errors.Is(f, unix.EINVAL) {
			t.Errorf("%+v", f)
		}
		r.owner.Send(r.link, "what?")
		if f := actortest.Next[*reconnect.Refused](r.owner); !errors.Is(f, unix.EINVAL) {
			t.Errorf("%+v", f)
		}
		r.owner.Send(r.link, &rdma.Close{})
		r.send(5, "e")
		if f := actortest.Next[*reconnect.Refused](r.owner); f.Tag != 5 || !errors.Is(f, reconnect.ErrClosing) || !errors.Is(f, unix.ESHUTDOWN) {
			t.Errorf("%+v", f)
		}
		want := fates(reconnect.Unsent, false, 1, 2)
		if c := actortest.Next[*reconnect.Closed](r.owner); c.Err != nil || c.Counts.Unsent != 2 || !slices.Equal(c.Fates, want) {
			t.Errorf("%+v", c)
		}
	})
}
