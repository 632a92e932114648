package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// On a secured connection a Write with an immediate is refused unless Security.AllowOneSided has
// RemoteWrite, and one that comes nevertheless ends the connection: its owner has granted nothing.
func TestSecuredImmediate(t *testing.T) {
	sec := psk(t)
	onImmediates(t, func(w *world) {
		p := w.connect(IDConfig{Security: sec, Memory: 1 << 12})
		p.client.send(p.c, &Write{Key: RemoteKey{Length: 64, Rights: RemoteWrite}, HasImm: true})
		a, _ := next[*AccessError](p.client)
		is(w, a, ErrSecured)
		is(w, a, unix.EPERM)
		w.post(p.c, nil, RemoteKey{}, 0)
		end := until[*Closed](p.server)
		is(w, end[len(end)-1].msg.(*Closed).Err, unix.EPROTO)
		until[*Closed](p.client)
	})
	allowed := psk(t)
	allowed.AllowOneSided = rw
	onImmediates(t, func(w *world) {
		g := w.granted(64, IDConfig{Security: allowed})
		var came *Received
		g.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				came = m.Clone()
			}
		})
		g.client.send(g.c, &Write{Memory: g.near, Length: 64, Key: g.key, HasImm: true, Imm: 9})
		next[*WriteDone](g.client)
		settle()
		if came == nil || !came.HasImm || came.Imm != 9 || came.Written != 64 {
			w.Errorf("came: %v", came)
		}
	})
}
