package slots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// is fails the test unless errors.Is finds target.
func is(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("the error is %T %v, want %v", err, err, target)
	}
}

// panics fails the test unless f panics.
func panics(tb testing.TB, what string, f func()) {
	tb.Helper()
	defer func() {
		if recover() == nil {
			tb.Errorf("%s does not panic", what)
		}
	}()
	f()
}

// Slots go both ways, in order, whatever sizes the two sides have.
func TestBothWays(t *testing.T) {
	for _, x := range []struct{ near, far Config }{
		{},
		{Config{Slots: 1, Size: 16}, Config{Slots: 1, Size: 16}},
		{Config{Slots: 3, Size: 100}, Config{Slots: 128, Size: 64}},
		{Config{Slots: 16, Size: 32}, Config{Slots: 1, Size: 4096}},
	} {
		t.Run(fmt.Sprintf("%d slots of %d, %d of %d", x.near.Slots, x.near.Size, x.far.Slots, x.far.Size), func(t *testing.T) {
			rt := openRuntime(t)
			near, far := joined(t, rt, listen(t, rt, x.far), x.near)
			if near.Size() != far.Size() || near.Slots() != far.Slots() {
				t.Errorf("%d slots of %d here, %d of %d there", near.Slots(), near.Size(), far.Slots(), far.Size())
			}
			var wg sync.WaitGroup
			const n = 500
			for _, side := range []struct{ from, to *Conn }{{near, far}, {far, near}} {
				wg.Go(func() {
					for i := range n {
						send(t, side.from, fmt.Sprint("slot ", i))
					}
					if err := side.from.End(); err != nil {
						t.Error(err)
					}
				})
				wg.Go(func() {
					for i := range n {
						receives(t, side.to, fmt.Sprint("slot ", i))
					}
					_, err := side.to.Receive(soon(t))
					is(t, err, io.EOF)
				})
			}
			wg.Wait()
		})
	}
}

// On devices with immediates the Write notifies the peer itself, on others a message does. Both
// deliver the bytes, in virtual time.
func TestOnEveryDevice(t *testing.T) {
	for name, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{InfiniBand: infiniBand}, func(w *actortest.World) {
				t := w.T()
				l, err := Listen(t.Context(), w.Runtime(), "10.0.0.1:7471", Config{Slots: 4, Size: 1000})
				if err != nil {
					t.Fatal(err)
				}
				near, far := joined(t, w.Host("far", "10.0.0.2"), l, Config{Slots: 4, Size: 1000})
				go func() {
					for i := range 100 {
						send(t, near, fmt.Sprint(i))
					}
					send(t, near, "")
					_ = near.Close()
				}()
				for i := range 100 {
					receives(t, far, fmt.Sprint(i))
				}
				receives(t, far, "")
				_, err = far.Receive(t.Context())
				is(t, err, io.EOF)
				_ = far.Close()
				_ = l.Close()
			})
		})
	}
}

// The addresses of a name share the time until the context's deadline, so a silent one leaves the
// next its part.
func TestSilentAddressOfAName(t *testing.T) {
	for name, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{InfiniBand: infiniBand}, func(w *actortest.World) {
				const silent = "10.0.0.66"
				t, p := w.T(), w.Probe()
				p.Request(w.Host("mem2", silent).CreateID(p.PID(), rdma.IDConfig{AcceptTimeout: time.Hour}), &rdma.Serve{Addr: ":7471"})
				actortest.Next[*rdma.Listening](p)
				l, err := Listen(t.Context(), w.Host("mem1", "10.0.0.2"), "10.0.0.2:7471")
				if err != nil {
					t.Fatal(err)
				}
				w.Name("svc", silent, "10.0.0.2")
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				begin := w.Elapsed()
				near, err := Dial(ctx, w.Runtime(), "svc:7471")
				if err != nil {
					t.Fatal(err)
				}
				if took := w.Elapsed() - begin; took > 3*time.Second {
					t.Errorf("connected after %v, want half of the 5 s", took)
				}
				far, err := l.Accept(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = near.Close()
				_ = far.Close()
				_ = l.Close()
			})
		})
	}
}

// Whole slots of random bytes arrive unchanged, though programs keep some for a while and release
// them in any order.
func TestBytesArrive(t *testing.T) {
	near, far := pipe(t, openRuntime(t), Config{Slots: 6, Size: 100_000})
	sums := make(chan []byte, 1000)
	var wg sync.WaitGroup
	for seed := range uint64(3) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 60 {
				s := reserve(t, near)
				n := 8 + random.IntN(len(s.Bytes())-8)
				for i := range n {
					s.Bytes()[i] = byte(random.Uint32())
				}
				want := bytes.Clone(s.Bytes()[:n])
				if random.IntN(10) == 0 {
					s.Release()
					continue
				}
				if err := s.Send(n); err != nil {
					t.Error(err)
				}
				sums <- want
			}
		})
	}
	go func() {
		wg.Wait()
		_ = near.End()
		close(sums)
	}()
	wanted := make(map[string]bool)
	var kept []Received
	release := func() {
		i := rand.IntN(len(kept))
		if b := string(kept[i].Bytes()); !wanted[b] {
			for sum := range sums {
				if wanted[string(sum)] = true; string(sum) == b {
					break
				}
			}
			if !wanted[b] {
				t.Errorf("%d bytes came that nobody has sent", len(b))
			}
		}
		kept[i].Release()
		kept = append(kept[:i], kept[i+1:]...)
	}
	for {
		r, err := far.Receive(soon(t))
		if err != nil {
			is(t, err, io.EOF)
			break
		}
		if kept = append(kept, r); len(kept) > 4 {
			release()
		}
	}
	for len(kept) > 0 {
		release()
	}
}

// If the peer releases nothing, Reserve waits and takes no further memory. A single released slot
// is returned to a side that has no other, although that is less than a batch.
func TestFlowControl(t *testing.T) {
	const slots = 16
	near, far := pipe(t, openRuntime(t), Config{Slots: slots, Size: 64})
	for i := range slots {
		send(t, near, fmt.Sprint(i))
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := near.Reserve(short)
	is(t, err, context.DeadlineExceeded)
	var all []Received
	for range slots {
		all = append(all, receive(t, far))
	}
	_, err = near.Reserve(short)
	is(t, err, context.DeadlineExceeded)
	all[2].Release()
	send(t, near, "into the one that is free")
	receives(t, far, "into the one that is free")
	for i, r := range all {
		switch {
		case i == 2:
			continue
		case string(r.Bytes()) != fmt.Sprint(i):
			t.Errorf("a slot that was not released has become %q", r.Bytes())
		}
		r.Release()
	}
}

// A closed listener accepts nothing more. That ends an Accept that waits, too.
func TestListenerClosed(t *testing.T) {
	l := listen(t, openRuntime(t))
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept(soon(t))
		ended <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	is(t, <-ended, ErrClosed)
	_, err := l.Accept(soon(t))
	is(t, err, ErrClosed)
	is(t, l.Close(), ErrClosed)
}

// A program cannot use a slot after it has sent or released it.
func TestSlotsAreUsedOnce(t *testing.T) {
	near, far := pipe(t, openRuntime(t), Config{Slots: 2, Size: 64})
	s := reserve(t, near)
	is(t, s.Send(65), unix.EINVAL)
	is(t, s.Send(-1), unix.EINVAL)
	if err := s.Send(3); err != nil {
		t.Error(err)
	}
	panics(t, "Send of a slot that was sent", func() { _ = s.Send(3) })
	panics(t, "Release of a slot that was sent", func() { s.Release() })
	r := receive(t, far)
	r.Release()
	panics(t, "the second Release", r.Release)
	s = reserve(t, near)
	s.Release()
	panics(t, "Release of a slot that was released", s.Release)
	send(t, near, "the connection goes on")
	receives(t, far, "the connection goes on")
}

// Each direction ends independently, once, and a closed connection delivers its sent slots.
func TestEnds(t *testing.T) {
	near, far := pipe(t, openRuntime(t), Config{Slots: 4, Size: 64})
	send(t, near, "last")
	kept := reserve(t, near)
	if err := near.End(); err != nil {
		t.Error(err)
	}
	is(t, near.End(), ErrEnded)
	is(t, kept.Send(1), ErrEnded)
	_, err := near.Reserve(t.Context())
	is(t, err, ErrEnded)
	receives(t, far, "last")
	for range 2 {
		_, err = far.Receive(t.Context())
		is(t, err, io.EOF)
	}
	send(t, far, "the other way goes on")
	if err := far.Close(); err != nil {
		t.Error(err)
	}
	is(t, far.Close(), ErrClosed)
	_, err = far.Reserve(t.Context())
	is(t, err, ErrClosed)
	_, err = far.Receive(t.Context())
	is(t, err, ErrClosed)
	receives(t, near, "the other way goes on")
	_, err = near.Receive(soon(t))
	is(t, err, io.EOF)
}

// A lost connection is reported to all waiting calls, and programs keep their slots.
func TestLost(t *testing.T) {
	far := openRuntime(t)
	rt := openRuntime(t)
	l := listen(t, far, Config{Slots: 2, Size: 64})
	near, server := joined(t, rt, l, Config{Slots: 2, Size: 64})
	send(t, server, "came before")
	got, free := receive(t, near), reserve(t, near)
	send(t, server, "came, too")
	for near.arrived() == 0 {
		time.Sleep(time.Millisecond)
	}
	send(t, near, "")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, err := near.Reserve(soon(t))
			is(t, err, unix.ECONNRESET)
		})
	}
	time.Sleep(10 * time.Millisecond)
	far.System().Root.Send(server.id, &rdma.DestroyID{})
	wg.Wait()
	receives(t, near, "came, too")
	_, err := near.Receive(soon(t))
	is(t, err, unix.ECONNRESET)
	if string(got.Bytes()) != "came before" {
		t.Errorf("%q", got.Bytes())
	}
	copy(free.Bytes(), "still ours")
	is(t, free.Send(10), unix.ECONNRESET)
	got.Release()
}

// arrived returns the number of slots that wait for Receive.
func (c *Conn) arrived() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.arrived.Len()
}

// Shutdown ends connections, and waits for slots that programs have.
func TestShutdown(t *testing.T) {
	rt := openRuntime(t)
	near, far := pipe(t, rt, Config{Slots: 2, Size: 64})
	send(t, near, "kept")
	got := receive(t, far)
	var released atomic.Bool
	time.AfterFunc(150*time.Millisecond, func() {
		if string(got.Bytes()) != "kept" {
			t.Errorf("%q", got.Bytes())
		}
		released.Store(true)
		got.Release()
	})
	if err := rt.Shutdown(soon(t)); err != nil || !released.Load() {
		t.Errorf("Shutdown: %v; the slot was given back before: %v", err, released.Load())
	}
	_, err := near.Receive(t.Context())
	is(t, err, rdma.ErrShutdown)
	_, err = near.Reserve(t.Context())
	is(t, err, unix.ECONNRESET)
}

// A connection that gets ready after Accept has reported the listener's end is closed.
func TestAcceptedAfterTheEnd(t *testing.T) {
	near, far := openRuntime(t), openRuntime(t)
	l := listen(t, near)
	l.recordEnd(rdma.ErrShutdown)
	_, err := l.Accept(soon(t))
	if !errors.Is(err, rdma.ErrShutdown) {
		t.Errorf("Accept: %v", err)
	}
	c, err := Dial(soon(t), far, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Receive(soon(t)); !errors.Is(err, io.EOF) {
		t.Errorf("its peer's Receive: %v, want EOF", err)
	}
}

// A zero Reserved or Received, which comes with an error, panics with a sentence when it is used.
func TestZeroSlots(t *testing.T) {
	for name, use := range map[string]func(){
		"Reserved.Bytes":   func() { Reserved{}.Bytes() },
		"Reserved.Send":    func() { _ = Reserved{}.Send(0) },
		"Reserved.Release": func() { Reserved{}.Release() },
		"Received.Release": func() { Received{}.Release() },
	} {
		func() {
			defer func() {
				if sentence, ok := recover().(string); !ok || !strings.HasPrefix(sentence, "slots: ") {
					t.Errorf("%s panics with %q", name, sentence)
				}
			}()
			use()
		}()
	}
	if b := (Received{}).Bytes(); b != nil {
		t.Errorf("a zero Received has %d bytes", len(b))
	}
}
