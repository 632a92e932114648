package actor

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// A Send that NewSend has not made is refused in an identifier's last moments as at any other time.
// It stays out of the pool: otherwise the next NewSend would return it.
func TestForeignSendStaysOutOfThePool(t *testing.T) {
	test := func(w *world) {
		p := w.probe()
		hold := make(chan struct{})
		if err := w.rt.loops[0].el.Post(func() { <-hold }); err != nil {
			w.Fatal(err)
		}
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, &DestroyID{})
		p.send(id, &Send{})
		p.send(id, &Send{})
		close(hold)
		settle()
		failed := 0
		for _, g := range until[*Closed](p) {
			if f, ok := g.msg.(*SendFailed); ok {
				is(w, f, unix.EINVAL)
				failed++
			}
		}
		if failed != 2 {
			w.Errorf("%d Sends were refused, want 2", failed)
		}
		for range 16 {
			if s := NewSend([]byte("x")); s.Len() != 1 {
				w.Errorf("a message of 1 byte has %d", s.Len())
			}
		}
	}
	t.Run("the actor has stopped", func(t *testing.T) { inWorld(t, states.IWARP, test) })
	t.Run("the mailbox has no room", func(t *testing.T) { inWorld(t, states.IWARP, test, Config{Limits: Limits{Mailbox: 1}}) })
}
