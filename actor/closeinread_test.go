package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/states"
)

// The credit that Close waits for arrives with a message that the connection handles. The
// disconnect follows in a separate turn, because it ends the connection.
func TestCloseEndsInATurnOfItsOwn(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m) // its credit does not come
			}
		})
		p.client.send(p.c, NewSend([]byte("last words")))
		p.client.send(p.c, &Close{})
		settle()
		read := make(chan states.State, 1)
		l := w.rt.loops[0]
		if err := l.el.Post(func() {
			for it := range l.ids {
				if !it.pid.Equal(p.c) {
					continue
				}
				chunk, err := it.conn.Device.Recvs[0].Arena.Get()
				if err != nil {
					w.Error(err)
				}
				wire.Header{Type: wire.TypeCredit, Consumed: 1}.Put(chunk.Bytes())
				it.conn.Receive(chunk, wire.HeaderLen)
				it.conn.Device.Drain()
				read <- it.id.State()
			}
		}); err != nil {
			w.Fatal(err)
		}
		if s := <-read; s != states.Connected {
			w.Errorf("%v within the call", s)
		}
		end := until[*Closed](p.client)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != 1 {
			w.Errorf("the end: %v", end)
		}
	})
}
