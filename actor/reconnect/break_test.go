package reconnect_test

import (
	"errors"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// Break ends the generation that it names, for the owner's reason, and no other. Earlier messages
// arrive. After a pause the next attempt follows.
func TestBreak(t *testing.T) {
	onFlavors(t, func(r *rig) {
		bad := errors.New("bad frame")
		r.serve()
		r.spawn(reconnect.Config{})
		_, up := r.accept()
		r.owner.Send(r.link, &reconnect.Break{Generation: up.Generation + 1, Err: bad})
		r.owner.Send(r.link, &reconnect.Break{Generation: up.Generation - 1, Err: bad})
		r.send(1, "reason")
		r.owner.Send(r.link, reconnect.Break{Generation: up.Generation, Err: bad})
		r.owner.Send(r.link, &reconnect.Break{Generation: up.Generation, Err: bad})
		r.hears("reason")
		_, d := r.untilDown()
		if d.Generation != up.Generation || !d.WasUp || !is(d.Err, bad) || d.NextTry.IsZero() {
			r.t.Errorf("got %+v", d)
		}
		r.ended()
		_, again := r.accept()
		if again.Generation != up.Generation+1 {
			r.t.Errorf("up again in generation %d", again.Generation)
		}
		r.finish()
	})
}

// Messages that arrive over a connection that is being broken off are dropped, and their sender
// does not take them for delivered.
func TestBreakTakesNothing(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		r.spawn(reconnect.Config{ID: rdma.IDConfig{Credits: 1}}) // each message is acknowledged
		conn, up := r.accept()
		r.Delay(10 * time.Millisecond)
		r.send(1, "an orderly end would wait for this")
		r.server.Request(conn, rdma.NewSend([]byte("late")))
		r.Wait()
		r.owner.Send(r.link, &reconnect.Break{Generation: up.Generation})
		r.untilDown()
		r.Advance(100 * time.Millisecond)
		for {
			if c, ok := actortest.Next[any](r.server).(*rdma.Closed); ok {
				if c.Delivered != 0 {
					r.t.Errorf("its sender got %v", c)
				}
				break
			}
		}
		r.Delay(0)
		r.accept()
		r.finish()
	})
}
