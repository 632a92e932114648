//go:build rdmadebug || race

package actor

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
)

// A reader of a released message reads nonsense, small or large; a writer is found when the memory
// is handed out again.
func TestMessagesAreSpoiltOnRelease(t *testing.T) {
	onAllKinds(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 20, Credits: 4, eager: kib})
		for _, n := range []int{100, 100_000} {
			var kept []byte
			p.server.reactWith(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*Received); ok {
					kept = m.Data
				}
			})
			p.client.send(p.c, NewSend(pattern(n, 1)))
			next[*Received](p.server)
			settle()
			w.onLoop(w.far, func(l *loop) {
				if !bytes.Equal(kept, bytes.Repeat([]byte{overwrite.With}, n)) {
					w.Errorf("%d bytes can still be read after they were given back", n)
				}
			})
		}
	})
}

// Sending on a released message panics, in builds that look for misuse.
func TestForwardAfterReleaseIsFound(t *testing.T) {
	onAllKinds(t, func(w *world) {
		p := w.connect()
		kept := make(chan *Received, 1)
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				kept <- m
			}
		})
		p.client.send(p.c, NewSend([]byte("x")))
		m := <-kept
		settle()
		p.client.send(p.c, NewSend([]byte("y"))) // another Received is made for this
		if <-kept == m {
			w.Error("a message that was given back is used again")
		}
		settle()
		defer func() {
			if r, ok := recover().(string); !ok || !strings.Contains(r, "was released") {
				w.Errorf("panicked with %v", r)
			}
		}()
		w.sys.Root.Send(p.client.pid, m)
	})
}

// Memory is its connection's loop's.
func TestMemoryOffTheLoop(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 64})
		m := memory(p.client, p.c, 64, 0)
		if _, err := m.ReadAt(make([]byte, 1), 0); !errors.Is(err, ErrOffLoop) {
			w.Errorf("ReadAt off the loop: %v", err)
		}
	})
}

func TestWritesAfterReleaseAreFound(t *testing.T) {
	found := func(what string, fn func()) {
		t.Helper()
		defer func() {
			if r, ok := recover().(string); !ok || !strings.Contains(r, what) {
				t.Errorf("%s: panicked with %v", what, r)
			}
		}()
		fn()
	}
	b := make([]byte, 100_000)
	overwrite.Bytes(b)
	overwrite.Check(b, "nothing")
	b[99_999] = 0
	found("a Send", func() { overwrite.Check(b, "a Send") })
	s := NewSendBuffer(10)
	s.Release()
	found("released before", s.Release)
	if s.Bytes() != nil {
		t.Error("the bytes of a Send that was released")
	}
}

// A receive that is posted again belongs to the device. If the device has written into it, together
// with a message of this connection, that is no misuse.
func TestReceivesArePostedAgain(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		server, client := w.farProbe(), w.probe()
		w.listen(server, IDConfig{MaxMessage: kib, Credits: 1})
		for range 2 {
			c := w.rt.CreateID(client.pid, IDConfig{MaxMessage: kib, Credits: 1})
			client.send(c, &Dial{Addr: there + ":7471"})
			_, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			next[*Established](client)
			for range 40 { // each receive has messages, and then credits or the goodbye
				client.send(c, NewSend([]byte("x")))
				next[*Received](server)
				settle()
			}
			client.send(c, &Close{})
			until[*Closed](client)
			until[*Closed](server)
		}
	})
}
