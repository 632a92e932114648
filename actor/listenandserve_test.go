package actor

import (
	"context"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// serving is a server that echoes, in ListenAndServe, with a client that is connected.
type serving struct {
	end      context.CancelFunc
	returned chan error
	server   *probe
	client   *probe
	c        *actor.PID
}

func (w *world) serving() serving {
	w.Helper()
	ctx, end := context.WithCancel(context.Background())
	s := serving{end: end, returned: make(chan error, 1), server: w.farProbe(), client: w.probe()}
	s.server.reactWith(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *ConnectRequest:
			ctx.Respond(&Accept{})
		case *Received:
			ctx.Respond(NewSend(m.Data))
		}
	})
	go func() { s.returned <- w.far.ListenAndServe(ctx, there+":7471", s.server.pid, IDConfig{}) }()
	settle()
	s.c = w.rt.CreateID(s.client.pid, IDConfig{})
	s.client.send(s.c, &Dial{Addr: there + ":7471"})
	next[*Established](s.client)
	s.client.send(s.c, NewSend([]byte("hello")))
	next[*Received](s.client)
	return s
}

func (w *world) shutdownFar() {
	w.Helper()
	if err := w.far.Shutdown(context.Background()); err != nil {
		w.Error(err)
	}
}

// When its context ends a server no longer listens, and its connections stay. Shutdown sends a
// goodbye to its clients and leaves nothing.
func TestListenAndServe(t *testing.T) {
	onFlavors(t, func(w *world) {
		s := w.serving()
		s.end()
		if err := <-s.returned; err != nil {
			w.Error(err)
		}
		_, err := Ask[*Established](context.Background(), w.rt, w.rt.CreateID(nil, IDConfig{}), &Dial{Addr: there + ":7471"})
		if !errors.Is(err, unix.ECONNREFUSED) {
			w.Errorf("a client that dials too late: %v", err)
		}
		s.client.send(s.c, NewSend([]byte("still here")))
		next[*Received](s.client)
		w.shutdownFar()
		if m, _ := next[*Disconnected](s.client); m.Err != nil {
			w.Errorf("the client's end: %v, want the server's goodbye", m.Err)
		}
		checkEmpty(w, w.far)
	})
}

// What ends a server apart from its context.
func TestListenAndServeEnds(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(w *world, s serving)
		want error
	}{
		"shut down by somebody": {by: func(w *world, _ serving) { _ = w.far.Shutdown(context.Background()) }},
		"its listener is closed": {want: ErrListenerClosed, by: func(w *world, s serving) {
			for _, id := range w.far.Inspect() {
				if id.State == states.Listening {
					w.sys.Root.Send(id.PID, &Close{})
				}
			}
		}},
		"its owner stops":         {want: ErrOwnerDied, by: func(w *world, s serving) { w.sys.Root.Stop(s.server.pid) }},
		"its device is unplugged": {want: unix.ENODEV, by: func(w *world, _ serving) { w.f.RemoveDevice("mem1") }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, states.IWARP, func(w *world) {
				s := w.serving()
				defer s.end()
				end.by(w, s)
				if err := <-s.returned; !errors.Is(err, end.want) {
					t.Errorf("got %v, want %v", err, end.want)
				}
				w.shutdownFar()
				checkEmpty(w, w.far)
			})
		})
	}
}

// A server that cannot listen reports that immediately, and leaves nothing.
func TestListenAndServeCannotListen(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		owner := w.farProbe()
		w.listen(w.farProbe())
		err := w.far.ListenAndServe(context.Background(), there+":7471", owner.pid, IDConfig{})
		var f Failure
		if !errors.Is(err, unix.EADDRINUSE) || !errors.As(err, &f) {
			t.Errorf("got %v, want a Failure with EADDRINUSE", err)
		}
		w.shutdownFar()
		checkEmpty(w, w.far)
	})
	inWorld(t, states.IWARP, func(w *world) { // an end before it listens is no error
		ctx, end := context.WithCancel(context.Background())
		end()
		if err := w.far.ListenAndServe(ctx, there+":7471", w.farProbe().pid, IDConfig{}); err != nil {
			t.Error(err)
		}
	})
}

// On a loop it would wait for itself.
func TestListenAndServeOnALoop(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		refused := make(chan error, 1)
		p := w.farProbe()
		p.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				refused <- w.far.ListenAndServe(context.Background(), there+":7471", ctx.Self(), IDConfig{})
			}
		})
		p.send(p.pid, "now")
		is(w, <-refused, eventloop.ErrOnLoop)
		if w.far.closing.Load() {
			t.Error("the runtime is shut down")
		}
	})
}
