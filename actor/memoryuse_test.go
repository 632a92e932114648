package actor

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// using makes a goroutine use m until release is called, which waits until it is finished.
func using(w *world, m *Memory) (b []byte, release func()) {
	w.Helper()
	got, end, over := make(chan []byte), make(chan struct{}), make(chan error)
	go func() {
		over <- m.Use(func(b []byte) error {
			got <- b
			<-end
			return nil
		})
	}()
	select {
	case b = <-got:
	case err := <-over:
		w.Fatalf("Use: %v", err)
	}
	return b, func() {
		close(end)
		if err := <-over; err != nil {
			w.Errorf("Use: %v", err)
		}
	}
}

// refusedUse checks that Use does not call its function.
func refusedUse(w *world, m *Memory, want ...error) {
	w.Helper()
	err := m.Use(func([]byte) error { w.Error("called"); return nil })
	for _, e := range want {
		is(w, err, e)
	}
}

// While a goroutine uses memory no other code can reach it, and attempts are refused.
func TestMemoryOnAGoroutine(t *testing.T) {
	onAllDevices(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 200})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		m := memory(p.client, p.c, 100, rw)
		fill(p.client, p.c, m, "from the loop")
		b, release := using(w, m)
		if string(b[:13]) != "from the loop" || len(b) != 100 {
			w.Errorf("%d bytes: %q", len(b), b[:13])
		}
		copy(b, "from a goroutine")
		refusedUse(w, m, ErrMemoryUsed, unix.EBUSY)
		for _, cmd := range []Command{
			&Grant{Memory: m}, &FreeMemory{Memory: m}, &Read{Memory: m, Key: key, Length: 8}, &Write{Memory: m, Key: key, Length: 8},
		} {
			p.client.send(p.c, cmd)
			f, _ := next[Failure](p.client)
			is(w, f, ErrMemoryUsed)
			is(w, f, unix.EBUSY)
		}
		touch(p.client, p.c, func() {
			_, err := m.ReadAt(make([]byte, 1), 0)
			is(w, err, ErrMemoryUsed)
			_, err = m.WriteAt(make([]byte, 1), 0)
			is(w, err, ErrMemoryUsed)
			if m.Bytes() != nil {
				w.Error("Bytes gives memory that a goroutine uses")
			}
		})
		release()
		if got := string(contents(p.client, p.c, m)[:16]); got != "from a goroutine" {
			w.Errorf("the loop sees %q", got)
		}
		p.client.send(p.c, &Write{Memory: m, Key: key, Length: 16})
		next[*WriteDone](p.client)
	})
}

// Memory that the peer or the device may reach is not for goroutines.
func TestMemoryThatCanBeReached(t *testing.T) {
	onAllDevices(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 200})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		m := memory(p.client, p.c, 100, rw)
		grant(p.client, p.c, m)
		grant(p.client, p.c, m)
		refusedUse(w, m, ErrMemoryReachable, unix.EBUSY)
		p.client.send(p.c, &Revoke{Memory: m})
		next[*Revoked](p.client)
		_, release := using(w, m)
		release()
		w.f.Delay(time.Second)
		for range 2 {
			p.client.send(p.c, &Read{Memory: m, Key: key, Length: 8})
		}
		settle()
		refusedUse(w, m, ErrMemoryReachable, unix.EBUSY)
		next[*ReadDone](p.client)
		next[*ReadDone](p.client)
		_, release = using(w, m)
		release()
		p.client.send(p.c, &FreeMemory{Memory: m})
		next[*Done](p.client)
		refusedUse(w, m, ErrMemoryGone, unix.EINVAL)
	})
}

// A function that does not return releases the memory, and the result of one that does is Use's.
func TestUseThatDoesNotReturn(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect(IDConfig{Memory: 100})
		m := memory(p.client, p.c, 100, rw)
		is(w, m.Use(func([]byte) error { return unix.EXDEV }), unix.EXDEV)
		func() {
			defer func() { _ = recover() }()
			_ = m.Use(func([]byte) error { panic("planted") })
		}()
		grant(p.client, p.c, m)
	})
}

// Memory that a goroutine uses when the connection ends stays until it has finished: on the
// kernel's devices its bytes would be unmapped under it. It counts against the limit until then,
// and then nothing is left.
func TestMemoryIsUsedBeyondTheEnd(t *testing.T) {
	onAllDevices(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 200})
		m, other := memory(p.client, p.c, 100, rw), memory(p.client, p.c, 60, rw)
		fill(p.client, p.c, m, "still here")
		mr := m.mr
		b, release := using(w, m)
		p.client.send(p.c, &Disconnect{})
		until[*Closed](p.client)
		until[*Closed](p.server)
		settle()
		free := func() (n int) { w.onLoop(w.rt, func(l *loop) { n = l.MemoryBudget }); return n }
		if mr.PD == nil || string(b[:10]) != "still here" {
			w.Errorf("the bytes are gone under who uses them: %q", b[:10])
		}
		if n := free(); n != 1<<10-100 {
			w.Errorf("%d of %d bytes are free while 100 are used", n, 1<<10)
		}
		w.onLoop(w.rt, func(*loop) {
			_, err := m.ReadAt(make([]byte, 1), 0)
			is(w, err, ErrMemoryGone)
			if m.Bytes() != nil {
				w.Error("Bytes gives memory of a connection that has ended")
			}
		})
		refusedUse(w, m, ErrMemoryGone)
		refusedUse(w, other, ErrMemoryGone)
		q := join(w, w.rt, p.server, there+":7471", IDConfig{Memory: 2 << 10})
		q.client.send(q.c, &AllocMemory{Bytes: 1 << 10})
		f, _ := next[*CommandFailed](q.client)
		is(w, f, unix.ENOMEM)
		release()
		settle()
		if n := free(); n != 1<<10 || mr.PD != nil {
			w.Errorf("%d of %d bytes are free, and nobody uses any", n, 1<<10)
		}
		memory(q.client, q.c, 1<<10, rw)
	}, Config{Limits: Limits{Memory: 1 << 10}})
}

// Pinned memory stays, too, and what would move or free its bytes is refused. Reads, Writes and
// grants are not.
func TestPinnedMemory(t *testing.T) {
	onAllDevices(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 200})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		m := memory(p.client, p.c, 100, rw)
		var unpin []func()
		w.onLoop(w.rt, func(l *loop) {
			for range 2 {
				_, end, err := (Local{l: l}).Pin(m)
				if err != nil {
					w.Fatal(err)
				}
				unpin = append(unpin, end)
			}
		})
		grant(p.client, p.c, m)
		p.client.send(p.c, &Write{Memory: m, Key: key, Length: 16})
		next[*WriteDone](p.client)
		for _, cmd := range []Command{&Revoke{Memory: m}, &FreeMemory{Memory: m}} {
			p.client.send(p.c, cmd)
			f, _ := next[*CommandFailed](p.client)
			is(w, f, ErrMemoryUsed)
		}
		mr := m.mr
		p.client.send(p.c, &Close{})
		until[*Closed](p.client)
		until[*Closed](p.server)
		unpin[0]()
		if settle(); mr.PD == nil {
			w.Error("freed, and it is pinned once more")
		}
		unpin[1]()
		if settle(); mr.PD != nil {
			w.Error("not freed")
		}
		w.onLoop(w.rt, func(l *loop) {
			_, _, err := Local{l: l}.Pin(m)
			is(w, err, ErrMemoryGone)
		})
	})
}

// Shutdown waits for goroutines that use memory, and when it must not wait any longer it leaves the
// memory to them and reports that.
func TestShutdownAndUsedMemory(t *testing.T) {
	for name, in := range map[string]time.Duration{"in time": 2 * time.Second, "too late": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				p := w.connect(IDConfig{Memory: 200})
				m := memory(p.client, p.c, 100, rw)
				mr := m.mr
				b, release := using(w, m)
				time.AfterFunc(in, release)
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				var err error
				took := elapsed(func() { err = w.rt.Shutdown(ctx) })
				if in < time.Minute {
					if err != nil || took != in || mr.PD != nil {
						w.Errorf("Shutdown: %v after %v", err, took)
					}
					return
				}
				if is(w, err, context.DeadlineExceeded); took != 10*time.Second || !contains(err.Error(), "1 memories of connections are still used") {
					w.Errorf("Shutdown: %v after %v", err, took)
				}
				b[0]++
				time.Sleep(time.Hour)
				if mr.PD == nil {
					w.Error("freed after the loop's end")
				}
				// it is left on purpose: the rig need not miss it
				w.rt.loops[0].MemoryBudget = w.rt.cfg.Limits.Memory
			})
		})
	}
}

// Goroutines and the loop compete for memory, and connections end in the middle: each holder has it
// alone (the race detector looks), and nothing is left.
func TestMemoryIsContended(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		random := rand.New(rand.NewPCG(1, seedOf(t.Name())))
		for range 20 {
			p := w.connect(IDConfig{Memory: 300})
			key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
			m := memory(p.client, p.c, 100, rw)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for err := error(nil); !errors.Is(err, ErrMemoryGone); time.Sleep(time.Microsecond) {
						err = m.Use(func(b []byte) error { b[0]++; return nil })
					}
				})
			}
			for range random.IntN(30) {
				for _, cmd := range []Command{&Write{Memory: m, Key: key, Length: 8}, &Grant{Memory: m}, &Revoke{Memory: m}} {
					p.client.send(p.c, cmd)
					p.client.any()
				}
				touch(p.client, p.c, func() { _, _ = m.WriteAt([]byte{1}, 0) })
			}
			p.client.send(p.c, &DestroyID{})
			until[*Closed](p.client)
			until[*Closed](p.server)
			wg.Wait()
			p.server.send(p.listener, &DestroyID{})
			next[*Closed](p.server)
		}
	})
}

// seized is an addition whose memory a goroutine uses as soon as no other code can reach it.
type seized struct{ *FetchAdd }

func (s seized) doneEvent(b EventBase) Event {
	taken := make(chan error)
	go func() { taken <- s.Memory.Use(func(b []byte) error { clear(b); return nil }) }()
	if err := <-taken; err != nil {
		panic(err)
	}
	return s.FetchAdd.doneEvent(b)
}

// The result of an atomic operation is taken from the memory before goroutines may have it again.
func TestAtomicBesideAGoroutine(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		p := w.connect(IDConfig{Memory: 300})
		key := grant(p.server, p.s, memory(p.server, p.s, 8, rwa))
		m := memory(p.client, p.c, 8, 0)
		for i := range uint64(2) {
			p.client.send(p.c, seized{&FetchAdd{Memory: m, Key: key, Add: 5}})
			if done, _ := next[*AtomicDone](p.client); done.Old != 5*i {
				t.Errorf("found %d, want %d", done.Old, 5*i)
			}
		}
	})
}
