package rdmanet

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// random returns n bytes that are the same in every run.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// A stream has no message boundaries. Whatever the sizes of Writes and Reads, the bytes are those
// that were written.
func TestSizesDoNotMatter(t *testing.T) {
	client, server := pipe(t, openRuntime(t))
	want := random(8 << 20)
	go func() {
		r := rand.New(rand.NewPCG(1, 2))
		for rest := want; len(rest) > 0; {
			n := min(1+r.IntN(1<<r.IntN(19)), len(rest)) // around a block, a message, a window
			if _, err := client.Write(rest[:n]); err != nil {
				t.Error(err)
				return
			}
			rest = rest[n:]
		}
		if err := client.CloseWrite(); err != nil {
			t.Error(err)
		}
	}()
	var got bytes.Buffer
	r := rand.New(rand.NewPCG(3, 4))
	for p := make([]byte, 1<<18); ; {
		n, err := server.Read(p[:1+r.IntN(1<<r.IntN(19))])
		got.Write(p[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes came of %d, or they are others", got.Len(), len(want))
	}
}

// Each half ends independently: io.Copy both ways concurrently, through WriteTo and through Read.
func TestHalfClose(t *testing.T) {
	for _, through := range []string{"WriteTo", "Read"} {
		t.Run(through, func(t *testing.T) {
			client, server := pipe(t, openRuntime(t))
			var from io.Reader = server
			if through == "Read" {
				from = struct{ io.Reader }{server}
			}
			go func() {
				var all bytes.Buffer
				if _, err := io.Copy(&all, from); err != nil { // to the client's FIN
					t.Error(err)
				}
				if _, err := server.Write(all.Bytes()); err != nil {
					t.Errorf("writing after the peer's FIN: %v", err)
				}
				if err := server.CloseWrite(); err != nil {
					t.Error(err)
				}
			}()
			want := random(3<<20 + 1)
			if _, err := client.Write(want); err != nil {
				t.Fatal(err)
			}
			if err := client.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if err := client.CloseWrite(); err != nil {
				t.Errorf("CloseWrite a second time: %v", err)
			}
			_, err := client.Write([]byte("x"))
			is(t, err, unix.EPIPE)
			got, err := io.ReadAll(client)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back of %d, %v", len(got), len(want), err)
			}
			if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("Read after the end: %d, %v", n, err)
			}
		})
	}
}

// WriteTo returns its writer's error, and not the stream's. Reading then goes on after the bytes
// that were written, whatever has arrived in between, and however the bytes were divided into
// Writes.
func TestWriteToStopsAtTheWritersError(t *testing.T) {
	for _, size := range []int{3000, 50_000} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			client, server := pipe(t, openRuntime(t))
			want := random(size + 20*1000)
			if _, err := client.Write(want[:size]); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(server, make([]byte, 500)); err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(writeFunc(func(p []byte) (int, error) {
				given := bytes.Clone(p)
				for i := size; i < len(want); i += 1000 { // more than fits into a block
					if _, err := client.Write(want[i : i+1000]); err != nil {
						t.Error(err)
					}
				}
				if err := client.CloseWrite(); err != nil {
					t.Error(err)
				}
				for finned := false; !finned; runtime.Gosched() { // until all has arrived
					server.rd.mu.Lock()
					finned = server.rd.finned
					server.rd.mu.Unlock()
				}
				if !bytes.Equal(p, given) {
					t.Error("the bytes have changed while they were written")
				}
				return 1000, io.ErrShortWrite
			}), server)
			if n != 1000 || !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("io.Copy said %d, %v", n, err)
			}
			if got, err := io.ReadAll(server); err != nil || !bytes.Equal(got, want[1500:]) {
				t.Errorf("%d bytes are left, or others, of %d, %v", len(got), len(want)-1500, err)
			}
		})
	}
}

// A writer that panics, or ends its goroutine, in the middle of WriteTo has taken no bytes. The
// process goes on, and so does reading afterwards.
func TestWriteToSurvivesItsWriter(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("the writer's") }, "Goexit": runtime.Goexit} {
		for _, size := range []int{3000, 50_000} {
			t.Run(name+"/"+strconv.Itoa(size), func(t *testing.T) {
				client, server := pipe(t, openRuntime(t))
				want := random(size)
				if _, err := client.Write(want); err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { _ = recover() }()
					_, _ = server.WriteTo(writeFunc(func([]byte) (int, error) {
						end()
						return 0, nil
					}))
				}()
				<-ended
				got := make([]byte, size)
				if n, err := io.ReadFull(server, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes are left, %v", n, err)
				}
			})
		}
	}
}

// A writer that reports more bytes than there were, or fewer than none, has taken none.
func TestWriteToDoesNotBelieveItsWriter(t *testing.T) {
	for _, says := range []int{-1, 3001} {
		client, server := pipe(t, openRuntime(t))
		if _, err := client.Write(make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
		n, err := server.WriteTo(writeFunc(func([]byte) (int, error) { return says, nil }))
		if n != 0 || err == nil {
			t.Errorf("with %d WriteTo said %d, %v", says, n, err)
		}
		if n, err := io.ReadFull(server, make([]byte, 3000)); err != nil {
			t.Errorf("%d bytes are left, %v", n, err)
		}
	}
}

// After CloseRead nothing can be read, and the peer does not block because of it.
func TestCloseRead(t *testing.T) {
	client, server := pipe(t, openRuntime(t))
	if _, err := client.Write(make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := server.CloseRead(); err != nil {
		t.Fatal(err)
	}
	if n, err := server.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read said %d, %v", n, err)
	}
	if _, err := client.Write(make([]byte, 10<<20)); err != nil {
		t.Error(err)
	}
	if _, err := server.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// Bytes written before Close arrive, followed by the FIN; writing to a side that has closed returns
// EPIPE.
func TestCloseDelivers(t *testing.T) {
	client, server := pipe(t, openRuntime(t))
	want := random(2 << 20)
	go func() {
		if _, err := client.Write(want); err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		is(t, client.Close(), net.ErrClosed)
	}()
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came of %d, %v", len(got), len(want), err)
	}
	for err == nil {
		_, err = server.Write([]byte("x"))
	}
	is(t, err, unix.EPIPE)
	if err := server.CloseWrite(); err != nil {
		t.Errorf("CloseWrite towards a peer that has closed: %v", err)
	}
}

// Close ends blocked methods, which return net.ErrClosed.
func TestCloseUnblocks(t *testing.T) {
	client, _ := pipe(t, openRuntime(t))
	errs := make(chan error, 2)
	begun := make(chan struct{})
	go func() {
		_, err := client.Read(make([]byte, 1))
		errs <- err
	}()
	go func() {
		close(begun)
		_, err := client.Write(make([]byte, 64<<20)) // the peer does not read
		errs <- err
	}()
	<-begun
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	is(t, <-errs, net.ErrClosed)
	is(t, <-errs, net.ErrClosed)
	_, err := client.Read(nil)
	is(t, err, net.ErrClosed)
	_, err = client.Write(nil)
	is(t, err, net.ErrClosed)
	is(t, client.SetDeadline(time.Time{}), net.ErrClosed)
	is(t, client.CloseWrite(), net.ErrClosed)
	is(t, client.CloseRead(), net.ErrClosed)
}

// A Close in the middle of a Read from a message releases the message: otherwise Shutdown would
// wait for it, and fail the test.
func TestCloseDuringReads(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	for range 50 {
		client, server := connect(t, rt, l)
		go func() {
			for {
				if _, err := client.Write(make([]byte, 60_000)); err != nil {
					return
				}
			}
		}()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for p := make([]byte, 1000); ; {
				if _, err := server.Read(p); err != nil {
					return
				}
			}
		}()
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		_ = server.Close()
		<-ended
		_ = client.Close()
	}
}

// Close and CloseRead while a message is being read: it is released, once, when its reader is
// finished with it.
func TestCloseWithinARead(t *testing.T) {
	for name, end := range map[string]func(*Conn) error{"Close": (*Conn).Close, "CloseRead": (*Conn).CloseRead} {
		t.Run(name, func(t *testing.T) {
			client, server := pipe(t, openRuntime(t))
			if _, err := client.Write(make([]byte, 200_000)); err != nil {
				t.Fatal(err)
			}
			n, err := server.WriteTo(writeFunc(func(p []byte) (int, error) {
				if err := end(server); err != nil {
					t.Error(err)
				}
				return len(p), nil
			}))
			if n == 0 || n > pieceMax {
				t.Errorf("%d bytes were read, want one message", n)
			}
			if name == "Close" {
				is(t, err, net.ErrClosed)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

type writeFunc func(p []byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// If a runtime's queues are too short for a stream's window, an error reports that, and the peer
// does not get a stream with a gap.
func TestQueueTooShort(t *testing.T) {
	client, server := pipe(t, openRuntime(t, rdma.Config{Limits: rdma.Limits{SendQueue: 4}}))
	want := random(16 << 20)
	_, err := client.Write(want) // the peer does not read
	is(t, err, unix.ECONNRESET)
	is(t, err, rdma.ErrQueueFull)
	got, err := io.ReadAll(server)
	is(t, err, unix.ECONNRESET)
	if !bytes.HasPrefix(want, got) {
		t.Errorf("the %d bytes that came are not the first of those that were sent", len(got))
	}
}

// Each end's remote address is the other's local one. They are TCP's, because a program that limits
// its peers by their addresses otherwise has none, or takes all for one.
func TestAddresses(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	client, server := connect(t, rt, l)
	near, far, at := client.LocalAddr().(*net.TCPAddr), client.RemoteAddr().(*net.TCPAddr), l.Addr().(*net.TCPAddr)
	if near.String() != server.RemoteAddr().String() || far.String() != server.LocalAddr().String() || far.String() != at.String() {
		t.Errorf("%v to %v, and %v to %v; the listener is %v",
			client.LocalAddr(), client.RemoteAddr(), server.LocalAddr(), server.RemoteAddr(), l.Addr())
	}
	if !near.IP.IsLoopback() || !at.IP.IsLoopback() || at.Port == 0 {
		t.Errorf("the listener's address is %v, the client's %v", at, near)
	}
}
