//go:build amd64 || arm64

package native

import (
	"os"
	"sync"
	"unsafe"

	_ "github.com/ebitengine/purego" // the C side of Go's runtime, where cgo is off
	"golang.org/x/sys/unix"
)

// crossing is a list of calls of C functions that are made in one crossing from Go to C. trampoline
// depends on its layout. It is in mapped memory.
type crossing struct {
	count         uintptr
	errnoLocation uintptr // __errno_location
	errno         uintptr // of the calls, 0 if none has set it
	// number of calls at the end to skip if the one before them returns more than 0
	optional uintptr
	calls    [maxCalls]cCall
}

// maxCalls is the largest number of calls in one crossing.
const maxCalls = 16

// cCall is a call of a C function with up to six integers or addresses.
type cCall struct {
	fn   uintptr
	args [6]uintptr
	ret  uintptr
}

// trampoline is in assembly. cgocall calls it by trampolineAddr.
func trampoline() //nolint:unused // by its address

var trampolineAddr unsafe.Pointer

// cgocall calls fn on the thread's stack. Package runtime keeps it for packages like this one.
//
//go:linkname cgocall runtime.cgocall
//go:noescape
func cgocall(fn, arg unsafe.Pointer) int32

// page is mapped memory for crossings, one at a time, with room for data that the calls point to.
type page struct {
	*crossing
	lib *library
	mem []byte
}

const (
	pageLen   = 4096
	scratchAt = 2048 // data that calls point to
)

// pages are for infrequent calls.
var pages struct {
	sync.Mutex
	free [][]byte
}

// newPage returns a page. Its scratch memory is zero.
func (l *library) newPage() (*page, error) {
	pages.Lock()
	defer pages.Unlock()
	var mem []byte
	if n := len(pages.free); n > 0 {
		mem = pages.free[n-1]
		pages.free = pages.free[:n-1]
	} else {
		var err error
		if mem, err = mapMemory(pageLen); err != nil {
			return nil, err
		}
	}
	clear(mem)
	p := &page{crossing: typedAt[crossing](mem, 0), lib: l, mem: mem}
	p.errnoLocation = l.errnoLocation
	return p, nil
}

// release returns the page to pages.
func (p *page) release() {
	if p == nil || p.mem == nil {
		return
	}
	pages.Lock()
	defer pages.Unlock()
	pages.free = append(pages.free, p.mem)
	p.mem, p.crossing = nil, nil
}

// makeCalls makes the first n calls of the crossing.
func (p *page) makeCalls(n int) { p.crossUnless(n, -1) }

// crossUnless makes n calls, but skips the last optional ones if the call before them returns more
// than 0.
func (p *page) crossUnless(n, optional int) {
	p.count, p.optional = uintptr(n), uintptr(optional)
	cgocall(trampolineAddr, unsafe.Pointer(p.crossing))
}

// invoke makes one call. errno is 0 if the function has not set it.
func (p *page) invoke(fn uintptr, args ...uintptr) (ret uintptr, errno unix.Errno) {
	c := &p.calls[0]
	c.fn = fn
	copy(c.args[:], args)
	p.makeCalls(1)
	return c.ret, unix.Errno(p.errno)
}

// mapMemory maps n bytes. C and devices see only such memory, never Go's heap.
func mapMemory(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return mem, os.NewSyscallError("mmap", err)
}

// unmapOnce unmaps *mem, once.
func unmapOnce(mem *[]byte) {
	if *mem != nil {
		_ = unix.Munmap(*mem) // it fails only for memory that is not mapped
		*mem = nil
	}
}

// addressIn returns the address for C of x, which is in mapped memory.
func addressIn[T any](x *T) uint64 { return uint64(uintptr(unsafe.Pointer(x))) }

// typedAt returns a T in mapped memory. Out of its bounds it panics, as a slice does.
func typedAt[T any](mem []byte, off int) *T {
	var zero T
	return (*T)(unsafe.Pointer(unsafe.SliceData(mem[off : off+int(unsafe.Sizeof(zero))])))
}

// sizeOf returns T's size in C.
func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// addressOf returns the address for C of mem.
func addressOf(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// scratchVar returns a T in the page's scratch memory, and its address for C.
func scratchVar[T any](p *page, off int) (*T, uintptr) {
	x := typedAt[T](p.mem, scratchAt+off)
	return x, uintptr(unsafe.Pointer(x))
}

// pointerTo converts an address in C's memory. That memory does not belong to Go, so Go neither
// moves nor frees it.
func pointerTo(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// peek returns a T in C's memory, off bytes from addr.
func peek[T any](addr uintptr, off uintptr) T { return *(*T)(pointerTo(addr + off)) }

// stringAt returns a string in C's memory, of at most n bytes.
func stringAt(addr uintptr, n int) string {
	if addr == 0 {
		return ""
	}
	b := unsafe.Slice((*byte)(pointerTo(addr)), n)
	for i := range b {
		if b[i] == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
