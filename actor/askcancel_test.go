package actor

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/states"
)

// The context of an Ask may end at the moment of the answer. The caller gets either the answer or
// the error. With the error the identifier is gone: no other code knows of the connection that it
// has made.
func TestAskWhoseContextEndsWithTheAnswer(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		server := w.farProbe()
		server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				ctx.Respond(&Accept{})
			}
		})
		w.listen(server)
		w.f.Delay(10 * time.Millisecond)
		dial := func(ctx context.Context) (id *actor.PID, err error) {
			id = w.rt.CreateID(nil, IDConfig{})
			_, err = Ask[*Established](ctx, w.rt, id, &Dial{Addr: there + ":7471"})
			return id, err
		}
		var id *actor.PID
		took := elapsed(func() { id, _ = dial(context.Background()) })
		w.sys.Root.Send(id, &DestroyID{})
		for i := range 60 {
			ctx, cancel := context.WithTimeout(context.Background(), took)
			id, err := dial(ctx)
			cancel()
			settle()
			_, there := w.state(id)
			if there != (err == nil) {
				w.Fatalf("run %d: Ask says %v, and the identifier is there: %v", i, err, there)
			}
			if there {
				w.sys.Root.Send(id, &DestroyID{})
			}
			time.Sleep(time.Minute)
			for len(server.got) > 0 {
				<-server.got
			}
		}
	})
}
