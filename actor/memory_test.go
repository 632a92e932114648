package actor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// A handle reports when its memory is gone, or used illegally.
func TestMemoryHandle(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 64})
		m := memory(p.client, p.c, 64, 0)
		touch(p.client, p.c, func() {
			for _, x := range []struct {
				off int64
				n   int
			}{{-1, 1}, {64, 1}, {60, 5}, {1 << 62, 1}} {
				if n, err := m.WriteAt(make([]byte, x.n), x.off); n != 0 || !errors.Is(err, unix.EINVAL) {
					w.Errorf("%d bytes at %d: %d, %v", x.n, x.off, n, err)
				}
			}
			if n, err := m.WriteAt(make([]byte, 64), 0); n != 64 || err != nil {
				w.Errorf("all of it: %d, %v", n, err)
			}
			if len(m.Bytes()) != 64 || m.Len() != 64 || m.Access() != 0 {
				w.Error("a handle does not say what it is of")
			}
		})
		for _, i := range w.rt.Inspect() {
			if i.Memory != 64 {
				w.Errorf("Inspect reports %d bytes", i.Memory)
			}
		}
		p.client.send(p.c, &Disconnect{})
		until[*Closed](p.client)
		until[*Closed](p.server)
		w.onLoop(w.rt, func(*loop) {
			if _, err := m.ReadAt(make([]byte, 1), 0); !errors.Is(err, ErrMemoryGone) || m.Bytes() != nil {
				w.Errorf("when the connection is gone: %v", err)
			}
		})
	})
}

// The memory that an operation names stays while it is under way, and a command is not taken twice.
func TestMemoryInUse(t *testing.T) {
	onAllDevices(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 200})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		near := memory(p.client, p.c, 100, rw)
		grant(p.client, p.c, near)
		w.f.Delay(time.Second)
		read := &Read{Key: key, Memory: near, Length: 8}
		p.client.send(p.c, read)
		for cmd, want := range map[Command]error{
			&FreeMemory{Memory: near}: unix.EBUSY, &Revoke{Memory: near}: unix.EBUSY, read: unix.EINVAL,
		} {
			p.client.send(p.c, cmd)
			f, _ := next[Failure](p.client)
			is(w, f, want)
		}
		next[*ReadDone](p.client)
		p.client.quiet()
		p.client.send(p.c, &Revoke{Memory: near})
		next[*Revoked](p.client)
	})
}

// An Ask that gives up costs the identifier, as with every command that has no other cancel.
func TestAskGivesUpOnRead(t *testing.T) {
	inWorld(t, infiniband, func(w *world) {
		p := w.connect(IDConfig{Memory: 200})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		near := memory(p.client, p.c, 100, 0)
		w.f.Delay(time.Hour)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := Ask[*ReadDone](ctx, w.rt, p.c, &Read{Key: key, Memory: near, Length: 8}); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("Ask: %v", err)
		}
		w.f.Delay(0)
		if c := until[*Closed](p.client); !errors.Is(c[len(c)-1].msg.(*Closed).Err, context.DeadlineExceeded) {
			w.Errorf("the end: %v", c)
		}
	})
}

// An owner's death takes memory and operations along.
func TestOwnerOfMemoryDies(t *testing.T) {
	onAllDevices(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 200})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		near := memory(p.client, p.c, 100, 0)
		w.f.Delay(time.Second)
		p.client.send(p.c, &Read{Key: key, Memory: near, Length: 8})
		settle()
		w.sys.Root.Stop(p.client.pid)
		until[*Closed](p.server) // Shutdown finds all memory released
	})
}

// Without memory in the connection's plan, before there is a connection, and beyond the loop's
// limit there is none.
func TestMemoryLimits(t *testing.T) {
	onAllDevices(t, func(w *world) {
		p := w.connect()
		idle := w.rt.CreateID(p.client.pid, IDConfig{})
		for _, x := range []struct {
			id   *actor.PID
			cmd  Command
			want error
		}{
			{p.c, &AllocMemory{Bytes: 1}, unix.ENOMEM},
			{idle, &AllocMemory{Bytes: 1}, unix.ENOTCONN},
			{idle, &Read{Length: 0}, unix.ENOTCONN},
		} {
			p.client.send(x.id, x.cmd)
			f, _ := next[Failure](p.client)
			is(w, f, x.want)
		}
		q := join(w, w.rt, p.server, there+":7471", IDConfig{Memory: 2 << 10})
		memory(q.client, q.c, 1<<10, 0)
		q.client.send(q.c, &AllocMemory{Bytes: 1})
		f, _ := next[*CommandFailed](q.client)
		is(w, f, unix.ENOMEM)
	}, Config{Limits: Limits{Memory: 1 << 10}})
}

// A Read that the device keeps beyond the end of its actor is answered once, before Closed, and
// not again when the device is finished.
func TestReadIsAbandonedOnce(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
		near.takes = map[states.Op]time.Duration{states.OpDestroyID: time.Hour}
		p := w.connect(IDConfig{Memory: 100})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		m := memory(p.client, p.c, 100, 0)
		w.f.Delay(time.Minute)
		p.client.send(p.c, &Read{Key: key, Memory: m, Length: 8})
		settle()
		w.sys.Root.Stop(p.c)
		f, _ := next[*AccessError](p.client)
		is(w, f, ErrFlushed)
		next[*Closed](p.client)
		time.Sleep(2 * time.Hour)
		settle()
		p.client.quiet()
		until[*Closed](p.server)
	})
}
