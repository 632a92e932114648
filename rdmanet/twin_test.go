package rdmanet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// inWorlds runs a test over the device in memory, in virtual time, as iWARP and as InfiniBand,
// which pads private data.
func inWorlds(
	t *testing.T, test func(w *actortest.World, rt *rdma.Runtime, l *Listener), cfg ...actortest.Config,
) {
	for name, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
		t.Run(name, func(t *testing.T) {
			c := one(cfg)
			c.InfiniBand = infiniBand
			actortest.Run(t, c, func(w *actortest.World) {
				l, err := Listen(w.T().Context(), w.Runtime(), "10.0.0.1:7471")
				if err != nil {
					t.Fatal(err)
				}
				test(w, w.Host("far", "10.0.0.2"), l.(*Listener))
				_ = l.Close()
			})
		})
	}
}

// joined returns a stream from rt to l.
func joined(w *actortest.World, rt *rdma.Runtime, l *Listener) (client, server *Conn) {
	c, err := Dial(w.T().Context(), rt, l.Addr().String())
	if err != nil {
		w.T().Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		w.T().Fatal(err)
	}
	w.T().Cleanup(func() {
		_ = c.Close()
		_ = s.Close()
	})
	return c.(*Conn), s.(*Conn)
}

// at fails the test unless exactly that much time has passed.
func at(w *actortest.World, what string, since, want time.Duration) {
	w.T().Helper()
	if passed := w.Elapsed() - since; passed != want {
		w.T().Errorf("%s: %v have passed, want %v", what, passed, want)
	}
}

// The addresses of a name share the time until the context's deadline, so a silent one leaves the
// next its part.
func TestSilentAddressOfAName(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		const silent = "10.0.0.66"
		p := w.Probe()
		p.Request(w.Host("mem2", silent).CreateID(p.PID(), rdma.IDConfig{AcceptTimeout: time.Hour}), &rdma.Serve{Addr: ":7471"})
		actortest.Next[*rdma.Listening](p)
		w.Name("svc", silent, "10.0.0.1")
		ctx, cancel := context.WithTimeout(w.T().Context(), 5*time.Second)
		defer cancel()
		begin := w.Elapsed()
		c, err := Dial(ctx, rt, "svc:7471")
		if err != nil {
			w.T().Fatal(err)
		}
		if took := w.Elapsed() - begin; took > 3*time.Second {
			w.T().Errorf("connected after %v, want half of the 5 s", took)
		}
		_ = c.Close()
		s, err := l.Accept()
		if err != nil {
			w.T().Fatal(err)
		}
		_ = s.Close()
	})
}

// Bytes go both ways, and so does the end, on iWARP and InfiniBand.
func TestTwinConversation(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		want := random(1 << 20)
		go func() {
			_, _ = io.Copy(server, server)
			_ = server.Close()
		}()
		go func() {
			_, _ = client.Write(want)
			_ = client.CloseWrite()
		}()
		if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back, %v", len(got), err)
		}
	})
}

// Read, Write and Accept end at their deadline and not before, even if it is set, moved or removed
// while they wait.
func TestTwinDeadlines(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, _ := joined(w, rt, l)
		read := func() (int, error) { return client.Read(make([]byte, 1)) }
		// the peer does not read
		write := func() (int, error) { return client.Write(make([]byte, 64<<20)) }
		accept := func() (int, error) { _, err := l.Accept(); return 0, err }
		for name, c := range map[string]struct {
			call func() (int, error)
			set  func(time.Time) error
		}{
			"Read": {read, client.SetReadDeadline}, "Write": {write, client.SetWriteDeadline}, "Accept": {accept, l.SetDeadline},
			"Read, both": {read, client.SetDeadline}, "Write, both": {write, client.SetDeadline},
		} {
			begin := w.Elapsed()
			set := func(after, to time.Duration) {
				time.AfterFunc(after, func() {
					if err := c.set(time.Now().Add(to)); err != nil {
						t.Error(err)
					}
				})
			}
			if err := c.set(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			set(30*time.Second, time.Minute)
			time.AfterFunc(time.Minute, func() { _ = c.set(time.Time{}) })
			set(time.Hour, time.Second)
			_, err := c.call()
			is(t, err, os.ErrDeadlineExceeded)
			at(w, name, begin, time.Hour+time.Second)
			_, err = c.call()
			is(t, err, os.ErrDeadlineExceeded)
			at(w, name, begin, time.Hour+time.Second)
			if err := c.set(time.Now().Add(-time.Second)); err != nil {
				t.Error(err)
			}
			_, err = c.call()
			is(t, err, os.ErrDeadlineExceeded)
			at(w, name, begin, time.Hour+time.Second)
			if err := c.set(time.Time{}); err != nil {
				t.Error(err)
			}
			set(time.Minute, 0)
			_, err = c.call()
			is(t, err, os.ErrDeadlineExceeded)
			at(w, name, begin, time.Hour+time.Second+time.Minute)
			if err := c.set(time.Time{}); err != nil {
				t.Error(err)
			}
		}
	})
}

// A Write interrupted by a deadline returns how many bytes were queued, and exactly those arrive;
// afterwards the stream goes on.
func TestTwinInterruptedWriteReturnsHowMuch(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		want := random(8 << 20)
		if err := client.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := client.Write(want) // the peer does not read
		is(t, err, os.ErrDeadlineExceeded)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no time-out", err)
		}
		if n < 2<<20 || n > 3<<20 {
			t.Errorf("%d bytes were taken, want what both windows take", n)
		}
		if err := client.SetWriteDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		go func() {
			if _, err := client.Write([]byte("behind")); err != nil {
				t.Error(err)
			}
			_ = client.CloseWrite()
		}()
		got, err := io.ReadAll(server)
		if err != nil || !bytes.Equal(got, append(want[:n:n], "behind"...)) {
			t.Errorf("%d bytes came of %d, %v", len(got), n+len("behind"), err)
		}
	})
}

// Close returns immediately. If the peer does not read, the connection stays for as long as it may
// linger, and no longer.
func TestTwinLinger(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		if _, err := client.Write(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
		begin := w.Elapsed()
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		at(w, "Close", begin, 0)
		w.Advance(29 * time.Second)
		if n := len(rt.Inspect()); n != 1 {
			t.Errorf("after 29 s there are %d identifiers, want the one that lingers", n)
		}
		w.Advance(2 * time.Second)
		if n := len(rt.Inspect()); n != 0 {
			t.Errorf("after 31 s there are %d identifiers", n)
		}
		// all bytes had arrived, and so had the FIN
		if got, err := io.ReadAll(server); len(got) != 10_000 {
			t.Errorf("%d bytes came, %v", len(got), err)
		}
	})
}

// A slow reader still gets everything.
func TestTwinLingerUntilItIsRead(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		if _, err := client.Write(make([]byte, 500_000)); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		w.Advance(20 * time.Second)
		if got, err := io.ReadAll(server); err != nil || len(got) != 500_000 {
			t.Errorf("%d bytes came, %v", len(got), err)
		}
		w.Wait()
		if n := len(rt.Inspect()); n != 0 {
			t.Errorf("there are still %d identifiers", n)
		}
	})
}

// Without an answer Dial fails with a time-out when the device gives up or the context ends.
func TestTwinDialTimesOut(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, _ *Listener) {
		w.Silence("10.0.0.9")
		_, err := Dial(w.T().Context(), rt, "10.0.0.9:7471")
		is(t, err, unix.ETIMEDOUT)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no time-out", err)
		}

		w.Silence("10.0.0.1") // resolving needs no answer, connecting does
		begin, why := w.Elapsed(), errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(w.T().Context(), time.Second, why)
		defer cancel()
		_, err = Dial(ctx, rt, "10.0.0.1:7471")
		is(t, err, context.DeadlineExceeded)
		is(t, err, unix.ETIMEDOUT)
		is(t, err, why)
		at(w, "Dial", begin, time.Second)
		w.Wait()
		if n := len(rt.Inspect()); n != 0 {
			t.Errorf("%d identifiers are left", n)
		}
		w.Unsilence("10.0.0.1")
	})
}

// A device that is pulled out ends streams on both sides, and the listener if it stays out.
func TestTwinDeviceRemoval(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		errs := make(chan error, 2)
		go func() {
			_, err := client.Read(make([]byte, 1))
			errs <- err
		}()
		go func() {
			_, err := l.Accept()
			errs <- err
		}()
		w.Wait()
		w.RemoveDevice("mem0")
		_, err := server.Read(make([]byte, 1))
		is(t, err, unix.ECONNRESET)
		is(t, err, unix.ENODEV)
		for range 2 {
			if err := <-errs; !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.ENODEV) {
				t.Errorf("what waited got %v", err)
			}
		}
		w.AddDevice("mem0")
	})
}

// When a connection breaks, both sides get ECONNRESET, after the bytes that had arrived.
func TestTwinBreak(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		if _, err := client.Write([]byte("some")); err != nil {
			t.Fatal(err)
		}
		w.Disconnect(client.wr.id)
		got, err := io.ReadAll(server)
		is(t, err, unix.ECONNRESET)
		if string(got) != "some" {
			t.Errorf("read %q", got)
		}
		w.Wait()
		_, err = client.Write([]byte("x"))
		is(t, err, unix.ECONNRESET)
	})
}

// Without lingering the connection is gone as soon as Close was called.
func TestTwinNoLinger(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		c, err := Dial(w.T().Context(), rt, l.Addr().String(), Config{Linger: -1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := c.Write(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
		begin := w.Elapsed()
		_ = c.Close()
		w.Wait()
		if n := len(rt.Inspect()); n != 0 {
			t.Errorf("there are still %d identifiers", n)
		}
		at(w, "Close", begin, 0)
	})
}

// A listener that has no memory for a connection rejects it immediately: neither its peer nor a
// place in the backlog waits until the request is too old.
func TestRejectsWhatItCannotAccept(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		w.Latency("10.0.0.1", 100*time.Millisecond)
		result := make(chan error, 1)
		go func() {
			_, err := Dial(w.T().Context(), rt, l.Addr().String())
			result <- err
		}()
		w.Advance(250 * time.Millisecond) // the peer's request is on its way
		w.RunOut(unix.ENOMEM)
		w.Advance(2 * time.Second)
		w.RunOut(0)
		select {
		case err := <-result:
			if err == nil {
				w.T().Error("a connection without memory")
			}
		default:
			w.T().Error("the peer still waits")
		}
		l.mu.Lock()
		if l.places.Total() > 0 {
			w.T().Errorf("%d connections wait to be accepted", l.places.Total())
		}
		l.mu.Unlock()
		joined(w, rt, l)
	})
}
