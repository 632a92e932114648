//go:build linux && (amd64 || arm64)

package native

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// libc returns a page and the address of a function of the C library.
func libc(tb testing.TB, symbol string) (*page, uintptr) {
	tb.Helper()
	errno, err := purego.Dlsym(purego.RTLD_DEFAULT, "__errno_location")
	if err != nil {
		tb.Fatal(err)
	}
	fn, err := purego.Dlsym(purego.RTLD_DEFAULT, symbol)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := (&library{errnoLocation: errno}).newPage()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.release)
	return p, fn
}

func TestCrossing(t *testing.T) {
	p, labs := libc(t, "labs")
	minus := -7
	if ret, errno := p.invoke(labs, uintptr(minus)); ret != 7 || errno != 0 {
		t.Errorf("labs(-7) is %d, errno %v", ret, errno)
	}
	for i := range maxCalls {
		p.calls[i] = cCall{fn: labs, args: [6]uintptr{uintptr(-i)}}
	}
	p.makeCalls(maxCalls)
	for i := range maxCalls {
		if p.calls[i].ret != uintptr(i) {
			t.Errorf("call %d of one crossing returned %d", i, p.calls[i].ret)
		}
	}
}

// TestCrossingArguments: C gets six arguments in their order.
func TestCrossingArguments(t *testing.T) {
	p, snprintf := libc(t, "snprintf")
	copy(p.mem[scratchAt:], "%d %d %d\x00")
	out := p.mem[scratchAt+64:]
	if ret, _ := p.invoke(snprintf, addressOf(out), 32, addressOf(p.mem[scratchAt:]), 1, 2, 3); ret != 5 || stringAt(addressOf(out), 32) != "1 2 3" {
		t.Errorf("snprintf returned %d and wrote %q", ret, stringAt(addressOf(out), 32))
	}
}

// TestOptionalCalls: they are made unless the call before them returns more than 0.
func TestOptionalCalls(t *testing.T) {
	p, labs := libc(t, "labs")
	for _, c := range []struct {
		before int
		made   bool
	}{{0, true}, {1, false}, {-1, false}} {
		for i := range 4 {
			p.calls[i] = cCall{fn: labs, args: [6]uintptr{9}}
		}
		p.calls[1].args[0] = uintptr(c.before) // the first call returns more than 0, too
		p.crossUnless(4, 2)
		if got := p.calls[2].ret == 9 && p.calls[3].ret == 9; got != c.made || p.calls[0].ret != 9 {
			t.Errorf("behind labs(%d): made %v", c.before, got)
		}
	}
	_, closeFn := libc(t, "close") // returns -1
	p.calls[0], p.calls[1] = cCall{fn: closeFn, args: [6]uintptr{1 << 20}}, cCall{fn: labs, args: [6]uintptr{5}}
	if p.crossUnless(2, 1); p.calls[1].ret != 5 {
		t.Error("not made behind a failure")
	}
}

// TestErrno: errno is the call's, and 0 if it has set none, whatever it was before.
func TestErrno(t *testing.T) {
	p, closeFn := libc(t, "close")
	minus := -1
	_, getpid := libc(t, "getpid")
	for range 3 {
		if ret, errno := p.invoke(closeFn, uintptr(minus)); int32(ret) != -1 || errno != unix.EBADF {
			t.Errorf("close(-1) returned %d, errno %v", int32(ret), errno)
		}
		if ret, errno := p.invoke(getpid); int(ret) != unix.Getpid() || errno != 0 {
			t.Errorf("getpid returned %d, errno %v", ret, errno)
		}
	}
}

// TestCrossingsOnManyThreads: errno belongs to the thread of its crossing, even while others cross
// and Go's memory is collected.
func TestCrossingsOnManyThreads(t *testing.T) {
	_, closeFn := libc(t, "close")
	var wg sync.WaitGroup
	for range 8 {
		p, _ := libc(t, "close")
		wg.Go(func() {
			minus := -1
			for i := range 2000 {
				if _, errno := p.invoke(closeFn, uintptr(minus)); errno != unix.EBADF {
					t.Errorf("errno is %v", errno)
					return
				}
				if i%500 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

func TestCrossingsDoNotAllocate(t *testing.T) {
	p, labs := libc(t, "labs")
	if n := testing.AllocsPerRun(100, func() { p.invoke(labs, 1, 2, 3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMissingLibrary(t *testing.T) {
	_, err := loadLibrary("libnotthere.so.1")
	var e *LibraryError
	if !errors.As(err, &e) || e.Library != "libnotthere.so.1" || !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "install") {
		t.Errorf("%v", err)
	}
}

func TestOtherLibrary(t *testing.T) {
	_, err := loadLibrary("libc.so.6")
	var e *LibraryError
	if !errors.As(err, &e) || !strings.HasPrefix(e.Symbol, "ibv_") || !strings.HasPrefix(e.Library, "libc") || !errors.Is(err, unix.ENOSYS) {
		t.Fatalf("%v", err)
	}
	for _, says := range []string{e.Library + ": ibv_", "older than 1.1", "install rdma-core"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
}

func BenchmarkCrossing(b *testing.B) {
	for _, n := range []int{1, 4, 16} {
		b.Run(map[int]string{1: "1 call", 4: "4 calls", 16: "16 calls"}[n], func(b *testing.B) {
			p, labs := libc(b, "labs")
			for i := range n {
				p.calls[i] = cCall{fn: labs}
			}
			b.ReportAllocs()
			for b.Loop() {
				p.makeCalls(n)
			}
		})
	}
}
