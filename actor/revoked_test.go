package actor

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A peer that uses memory all the time, and goes on when it was revoked, gets none of the bytes
// that the owner has written into it since, changes nothing in it, and loses its connection.
func TestRevokedMeansRevoked(t *testing.T) {
	for kind, write := range map[string]bool{"Read": false, "Write": true} {
		t.Run(kind, func(t *testing.T) {
			onEveryDevice(t, func(t testing.TB, p mate) { goesOn(t, p.pair, write) })
			onSecured(t, func(w *world, secured mode) {
				cfg := secured(w)
				cfg.Memory, cfg.Security.AllowOneSided = 1<<16, rw
				goesOn(w, w.connect(cfg), write)
			})
		})
	}
}

func goesOn(t testing.TB, p pair, write bool) {
	t.Helper()
	before, secret := bytes.Repeat([]byte{'b'}, 64), bytes.Repeat([]byte{'s'}, 64)
	far, near := memory(p.server, p.s, 64, rw), memory(p.client, p.c, 64, 0)
	fill(p.server, p.s, far, string(before))
	key := grant(p.server, p.s, far)
	var cmd Command = &Read{Key: key, Memory: near, Length: 64}
	if write {
		cmd = &Write{Key: key, Memory: near, Length: 64}
	}
	var revoked atomic.Bool
	left := 100_000 // on iWARP a Write is done when it has left
	p.client.reactWith(func(ctx actor.Context) {
		if revoked.Load() {
			if left--; left == 0 {
				t.Error("the peer goes on as if nothing had been revoked")
				ctx.Request(p.c, &DestroyID{})
			}
		}
		switch ctx.Message().(type) {
		case *ReadDone, *WriteDone:
			if b := near.Bytes(); bytes.Equal(b, secret) {
				t.Error("the peer has read what was written when its grant was gone")
				return
			}
			ctx.Request(p.c, cmd)
		}
	})
	looks := 0
	var look func()
	look = func() {
		if b := far.Bytes(); b != nil {
			if looks++; !bytes.Equal(b, secret) {
				t.Errorf("the memory holds %q: somebody has written into it whose grant was gone", b)
				return
			}
			far.home.el.AfterFunc(100*time.Microsecond, look)
		}
	}
	p.server.reactWith(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*Revoked); ok {
			if _, err := far.WriteAt(secret, 0); err != nil {
				t.Errorf("the owner writes: %v", err)
			}
			revoked.Store(true)
			look()
		}
	})
	p.client.send(p.c, cmd)
	for range 10 {
		p.client.any()
	}
	p.server.send(p.s, &Revoke{Memory: far})
	end := until[*Closed](p.client)
	last := end[len(end)-1].msg.(*Closed)
	if last.Err == nil && !denied(end) {
		t.Errorf("nothing says why the connection has ended: %s", kinds(end))
	}
	heard := until[*Closed](p.server)
	if _, ok := heard[0].msg.(*Revoked); !ok || looks == 0 {
		t.Errorf("the owner gets %s, and has looked %d times", kinds(heard), looks)
	}
}

// denied reports whether one of the events reports a denied access of the peer.
func denied(events []got) bool {
	for _, g := range events {
		switch m := g.msg.(type) {
		case *AccessError:
			return true
		case *Disconnected:
			if m.Err != nil {
				return true
			}
		}
	}
	return false
}
