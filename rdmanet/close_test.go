package rdmanet

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
)

// writeOn writes until an error. It must occur soon, because the windows of both sides take some 3
// MiB.
func writeOn(tb testing.TB, c *Conn) error {
	tb.Helper()
	p := make([]byte, 32<<10)
	for total := 0; ; total += len(p) {
		if _, err := c.Write(p); err != nil {
			return err
		}
		if total > 64<<20 {
			tb.Fatal("a peer that has closed takes 64 MiB and more")
		}
	}
}

// left fails the test if rt still has identifiers.
func left(w *actortest.World, rt *rdma.Runtime) {
	w.T().Helper()
	w.Wait()
	for _, id := range rt.Inspect() {
		w.T().Errorf("still there: %+v", id)
	}
}

// Data after a Close reset the connection (RFC 9293, 3.6.1), however long it may linger. The peer
// can still read the bytes that were sent to it.
func TestTwinDataBehindCloseResets(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		want := random(100_000)
		if _, err := client.Write(want); err != nil {
			t.Fatal(err)
		}
		_ = client.Close() // it lingers, since the server does not read
		w.Wait()
		begin := w.Elapsed()
		is(t, writeOn(t, server), unix.EPIPE)
		at(w, "Write", begin, 0)
		if got, err := io.ReadAll(server); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came, %v", len(got), err)
		}
		left(w, rt)
	})
}

// The same with full windows, so that the closed side can send nothing more. The FIN has not
// arrived, so the end is not io.EOF.
func TestTwinDataBehindCloseResetsThroughAFullQueue(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		want := random(8 << 20)
		_ = client.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := client.Write(want)
		is(t, err, os.ErrDeadlineExceeded)
		_ = client.Close()
		w.Wait()
		begin := w.Elapsed()
		is(t, writeOn(t, server), unix.ECONNRESET)
		if passed := w.Elapsed() - begin; passed > time.Second {
			t.Errorf("Write went on for %v", passed)
		}
		got, err := io.ReadAll(server)
		is(t, err, unix.ECONNRESET)
		if len(got) < 1<<20 || len(got) > n || !bytes.HasPrefix(want, got) {
			t.Errorf("%d bytes came, want the first of those %d that were taken", len(got), n)
		}
		left(w, rt)
	})
}

// Bytes that were not read when Close was called are lost, and the connection is reset. If all
// were read, the peer gets a FIN.
func TestTwinCloseWithUnreadResets(t *testing.T) {
	for name, c := range map[string]struct {
		writes []int
		read   int
		reset  bool
	}{
		"a small message": {[]int{100}, 99, true}, "a large one": {[]int{50_000}, 49_999, true},
		"one behind another": {[]int{50_000, 10}, 50_000, true},
		"nothing":            {[]int{50_000, 10}, 50_010, false}, "nothing small": {[]int{10, 10}, 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
				client, server := joined(w, rt, l)
				if _, err := client.Write([]byte("request")); err != nil {
					t.Fatal(err)
				}
				for _, n := range c.writes {
					if _, err := server.Write(make([]byte, n)); err != nil {
						t.Fatal(err)
					}
				}
				w.Wait()
				if _, err := io.ReadFull(client, make([]byte, c.read)); err != nil {
					t.Fatal(err)
				}
				begin := w.Elapsed()
				_ = client.Close()
				got, err := io.ReadAll(server)
				if string(got) != "request" {
					t.Errorf("read %q", got)
				}
				if c.reset {
					is(t, err, unix.ECONNRESET)
					is(t, writeOn(t, server), unix.ECONNRESET)
				} else {
					if err != nil {
						t.Error(err)
					}
					is(t, writeOn(t, server), unix.EPIPE)
				}
				at(w, "the end", begin, 0)
				left(w, rt)
			})
		})
	}
}

// Bytes that WriteTo is writing when Close is called count as read.
func TestTwinCloseDuringWriteTo(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		more bool
	}{"small": {100, false}, "large": {50_000, false}, "small, and more": {100, true}, "large, and more": {50_000, true}} {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
				client, server := joined(w, rt, l)
				if _, err := server.Write(make([]byte, c.size)); err != nil {
					t.Fatal(err)
				}
				_, err := client.WriteTo(writeFunc(func(p []byte) (int, error) {
					if c.more {
						if _, err := server.Write([]byte("more")); err != nil {
							t.Error(err)
						}
						w.Wait()
					}
					return len(p), client.Close()
				}))
				is(t, err, net.ErrClosed)
				if _, err := io.ReadAll(server); (err != nil) != c.more {
					t.Errorf("the server's Read says %v", err)
				}
			})
		})
	}
}

// SetLinger works as net.TCPConn's does: Config.Linger applies if it is negative, 0 resets, and a
// positive value is a limit.
func TestTwinSetLinger(t *testing.T) {
	for name, c := range map[string]struct {
		sec  []int
		want time.Duration
	}{
		"unset": {nil, 30 * time.Second}, "7": {[]int{7}, 7 * time.Second}, "3600": {[]int{3600}, time.Hour}, "0": {[]int{0}, 0},
		"0, -1": {[]int{0, -1}, 30 * time.Second}, "2, 0, 3": {[]int{2, 0, 3}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
				client, server := joined(w, rt, l)
				if _, err := client.Write(make([]byte, 10_000)); err != nil { // not read
					t.Fatal(err)
				}
				for _, sec := range c.sec {
					if err := client.SetLinger(sec); err != nil {
						t.Fatal(err)
					}
				}
				w.Wait()
				_ = client.Close()
				is(t, client.SetLinger(1), net.ErrClosed)
				w.Advance(c.want - min(c.want, time.Second))
				if n := len(rt.Inspect()); (n == 0) != (c.want == 0) {
					t.Errorf("before its time is over there are %d identifiers", n)
				}
				w.Advance(2 * time.Second)
				left(w, rt)
				_, err := io.ReadAll(server)
				if c.want == 0 {
					is(t, err, unix.ECONNRESET) // without a FIN, though all bytes have arrived
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The longest possible time must not overflow to one in the past.
func TestTwinLingerForEver(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		if err := client.SetLinger(math.MaxInt); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		w.Advance(time.Hour)
		if n := len(rt.Inspect()); n != 1 {
			t.Errorf("there are %d identifiers, want the one that lingers", n)
		}
		if got, err := io.ReadAll(server); err != nil || len(got) != 10_000 {
			t.Errorf("%d bytes came, %v", len(got), err)
		}
		left(w, rt)
	})
}

// Both sides close at the same time, also with bytes under way that will not be read.
func TestTwinBothClose(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		for _, write := range []int{0, 10, 100_000} {
			client, server := joined(w, rt, l)
			begin := w.Elapsed()
			var both sync.WaitGroup
			for _, c := range []*Conn{client, server} {
				both.Go(func() {
					if write > 0 {
						_, _ = c.Write(make([]byte, write))
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			left(w, rt)
			at(w, "the end", begin, 0)
		}
	})
}

// A stopped peer does not make a connection linger for longer than it may.
func TestTwinLingerForAFrozenPeer(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		_, server := joined(w, rt, l)
		if err := server.SetLinger(5); err != nil {
			t.Fatal(err)
		}
		w.Freeze("far")
		_ = server.SetWriteDeadline(time.Now().Add(time.Second))
		_, err := server.Write(make([]byte, 8<<20))
		is(t, err, os.ErrDeadlineExceeded)
		_ = server.Close()
		connections := func() (n int) {
			for _, id := range w.Runtime().Inspect() {
				if id.Peer.IsValid() {
					n++
				}
			}
			return n
		}
		w.Advance(4 * time.Second)
		if n := connections(); n != 1 {
			t.Errorf("after 4 s there are %d connections, want the one that lingers", n)
		}
		w.Advance(2 * time.Second)
		if n := connections(); n != 0 {
			t.Errorf("after 6 s there are %d connections", n)
		}
		w.Thaw("far")
	})
}

// CloseRead and CloseWrite together have the same effect as Close on a peer that writes.
func TestTwinBothHalvesShut(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		if err := client.CloseRead(); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Write(make([]byte, 10<<20)); err != nil { // dropped silently
			t.Fatal(err)
		}
		w.Wait()
		if _, err := client.Write([]byte("last")); err != nil {
			t.Fatal(err)
		}
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(server); err != nil || string(got) != "last" {
			t.Errorf("read %q, %v", got, err)
		}
		begin := w.Elapsed()
		is(t, writeOn(t, server), unix.EPIPE)
		at(w, "Write", begin, 0)
		left(w, rt)
	})
}

// A half-closed connection can still be read, and its peer may write.
func TestTwinCloseWriteDoesNotReset(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		w.Advance(time.Hour)
		want := random(8 << 20)
		go func() {
			if _, err := server.Write(want); err != nil {
				t.Error(err)
			}
			_ = server.Close()
		}()
		if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came, %v", len(got), err)
		}
	})
}

// Shutdown waits for connections that linger. A reset ends that wait.
func TestTwinShutdownWhileItLingers(t *testing.T) {
	for name, resets := range map[string]bool{"its peer reads": false, "its peer writes": true} {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
				client, server := joined(w, rt, l)
				if _, err := client.Write(make([]byte, 500_000)); err != nil {
					t.Fatal(err)
				}
				_ = client.Close()
				begin := w.Elapsed()
				ended := make(chan error, 1)
				go func() { ended <- rt.Shutdown(w.T().Context()) }()
				w.Advance(3 * time.Second)
				select {
				case err := <-ended:
					t.Fatalf("Shutdown did not wait: %v", err)
				default:
				}
				if resets {
					is(t, writeOn(t, server), unix.EPIPE)
				}
				if got, err := io.ReadAll(server); err != nil || len(got) != 500_000 {
					t.Errorf("%d bytes came, %v", len(got), err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				at(w, "Shutdown", begin, 3*time.Second)
			})
		})
	}
}

// If this side's Shutdown ends a connection, the error does not blame the peer.
func TestTwinOwnShutdownIsNotThePeers(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		errs := make(chan error, 1)
		go func() {
			_, err := client.Read(make([]byte, 1))
			errs <- err
		}()
		w.Wait()
		if err := rt.Shutdown(w.T().Context()); err != nil {
			t.Fatal(err)
		}
		_, write := client.Write([]byte("x"))
		for name, err := range map[string]error{"Read": <-errs, "Write": write} {
			is(t, err, unix.ECONNRESET)
			if !errors.Is(err, rdma.ErrShutdown) || errors.Is(err, errNoFIN) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := server.Read(make([]byte, 1))
		is(t, err, unix.ECONNRESET)
		is(t, err, errNoFIN)
	})
}

// Close races with all other methods: each call returns an error of a closed stream, and nothing of
// the connection is left, which Shutdown would report.
func TestCloseRacesWithEverything(t *testing.T) {
	rt := openRuntime(t, rdma.Config{Loops: make([]eventloop.Config, 2)})
	l := listen(t, rt)
	for i := range 60 {
		client, server := connect(t, rt, l)
		var calls sync.WaitGroup
		for _, c := range []*Conn{client, server} {
			calls.Go(func() {
				for {
					if _, err := c.Write(make([]byte, 10_000)); err != nil {
						return
					}
				}
			})
			calls.Go(func() { _, _ = io.Copy(io.Discard, c) })
			calls.Go(func() { _ = c.SetLinger(i%3 - 1) })
		}
		if _, err := server.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		calls.Go(func() { _ = server.CloseWrite() })
		for range 2 {
			calls.Go(func() { _ = client.Close() })
		}
		calls.Wait()
		_ = server.Close()
	}
}

// On several loops: bytes that a loop receives reset a connection, whatever its user's goroutines
// are doing.
func TestDataBehindCloseOnSeveralLoops(t *testing.T) {
	rt := openRuntime(t, rdma.Config{Loops: make([]eventloop.Config, 2)})
	l := listen(t, rt)
	var all sync.WaitGroup
	for range 8 {
		client, server := connect(t, rt, l)
		if _, err := client.Write(make([]byte, 500_000)); err != nil { // not read
			t.Fatal(err)
		}
		_ = client.Close()
		all.Go(func() {
			if err := writeOn(t, server); !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Close and CloseRead release the memory of unread bytes: immediately unless it is in use, and the
// message in use when its reader is finished, however little of it was read. Otherwise the peer's
// credits would be lost, and Shutdown would wait.
func TestTwinEndOfReadingReturnsMemory(t *testing.T) {
	reading := map[string]func(t *testing.T, c *Conn, end func()){
		"idle": func(_ *testing.T, _ *Conn, end func()) { end() },
		"a Read that takes a part": func(_ *testing.T, c *Conn, end func()) {
			c.rd.mu.Lock() // Read copies between these two
			c.rd.borrowLocked(7)
			end()
			c.rd.giveBack(7)
			c.rd.mu.Unlock()
		},
		"a WriteTo that takes a part": func(t *testing.T, c *Conn, end func()) {
			_, err := c.WriteTo(writeFunc(func(p []byte) (int, error) {
				end()
				return len(p) / 2, nil
			}))
			if !errors.Is(err, io.ErrShortWrite) {
				t.Error(err)
			}
		},
		"a WriteTo that panics": func(_ *testing.T, c *Conn, end func()) {
			defer func() { _ = recover() }()
			_, _ = c.WriteTo(writeFunc(func([]byte) (int, error) {
				end()
				panic("the writer's")
			}))
		},
	}
	for how, end := range map[string]func(*Conn) error{"Close": (*Conn).Close, "CloseRead": (*Conn).CloseRead} {
		for name, writes := range map[string][]int{"small": {100}, "large": {50_000}, "several": {100, 50_000, 10, 50_000}} {
			for during, read := range reading {
				t.Run(how+" during "+during+", "+name, func(t *testing.T) {
					inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
						client, server := joined(w, rt, l)
						for _, n := range writes {
							if _, err := server.Write(make([]byte, n)); err != nil {
								t.Fatal(err)
							}
						}
						w.Wait()
						read(t, client, func() {
							if err := end(client); err != nil {
								t.Error(err)
							}
						})
						w.Wait()
						if n := rt.Held() + w.Runtime().Held(); n != 0 {
							t.Errorf("%d messages are kept", n)
						}
						if r := &client.rd; r.small != nil || len(r.retained) > 0 {
							t.Errorf("a block is kept: %t, and %d messages", r.small != nil, len(r.retained))
						}
					})
				})
			}
		}
	}
}
