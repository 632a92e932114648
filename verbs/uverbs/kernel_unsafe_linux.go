package uverbs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
)

// Where things are in the page that requests are built in and answered to. It is mapped, not Go's:
// the kernel writes answers to an address that it reads from the request.
const (
	requestAt  = 0
	doorbellAt = 1024 // a postSend that needs only the queue pair's handle
	responseAt = 2048
	pageLen    = 4096
)

// kernel is an open device file.
type kernel struct {
	fd   int
	file string // name of the file
	page []byte
	siw  bool // else rxe

	stags      uint8
	channels   hca.Channels // -1 before they are open
	compEvent  compEventDesc
	asyncEvent hca.AsyncEvent

	mu    sync.Mutex
	using int    // calls off the loop: the descriptor's number must not become another file's
	last  func() // closes the file after the last of them
}

func openKernel(path string) (*kernel, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open "+path, err)
	}
	page, err := mapMemory(pageLen)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	k := &kernel{fd: fd, file: filepath.Base(path), page: page, channels: hca.Channels{Completions: -1, Async: -1}}
	k.prepareDoorbell()
	return k, nil
}

// prepareDoorbell writes the command that ringDoorbell sends.
func (k *kernel) prepareDoorbell() {
	*typedAt[cmdHdr](k.page, doorbellAt) = commandHeader(cmdPostSend, unsafe.Sizeof(postSend{}), unsafe.Sizeof(postSendResp{}))
	*typedAt[postSend](k.page, doorbellAt+hdrLen) = postSend{Response: k.responseAddr(), WQESize: sendWRSize}
}

// Close releases the file and all objects made through it. The kernel waits for queue pairs that a
// half open connection uses (siw); Close waits for that no longer than wait.
func (k *kernel) Close(wait time.Duration) error {
	if k.fd < 0 {
		return nil // see Removed
	}
	for _, fd := range []*int{&k.channels.Completions, &k.channels.Async} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
	closed := make(chan error, 1)
	k.mu.Lock()
	fd := k.fd
	k.fd = -1
	shut := func() { closed <- os.NewSyscallError("close", unix.Close(fd)) }
	if k.using > 0 {
		k.last = shut
	} else {
		go shut()
	}
	k.mu.Unlock()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case err := <-closed:
		return firstError(err, unmapOnce(&k.page))
	case <-timeout.C:
		return unmapOnce(&k.page)
	}
}

// useOffLoop calls use off the loop, where its commands may wait. They get separate memory for
// requests and answers. It returns ENODEV after the file was closed.
func (k *kernel) useOffLoop(use func(*kernel) error) error {
	k.mu.Lock()
	fd := k.fd
	if fd < 0 {
		k.mu.Unlock()
		return unix.ENODEV
	}
	k.using++
	k.mu.Unlock()
	page := spares.Get().(*[pageLen / 8]uint64)
	err := use(&kernel{fd: fd, file: k.file, page: unsafe.Slice((*byte)(unsafe.Pointer(page)), pageLen)})
	runtime.KeepAlive(page)
	spares.Put(page)
	k.mu.Lock()
	k.using--
	last := k.last
	if k.using > 0 || last == nil {
		k.mu.Unlock()
		return err
	}
	k.last = nil
	k.mu.Unlock()
	last()
	return err
}

// spares are pages for calls off the loop. They are Go's heap, which stays where it is while it is
// referenced.
var spares = sync.Pool{New: func() any { return new([pageLen / 8]uint64) }}

const hdrLen = int(unsafe.Sizeof(cmdHdr{}))

func commandHeader(cmd uint32, in, out uintptr) cmdHdr {
	return cmdHdr{Command: cmd, InWords: uint16((uintptr(hdrLen) + in) / 4), OutWords: uint16(out / 4)}
}

func (k *kernel) responseAddr() uint64 { return uint64(uintptr(unsafe.Pointer(&k.page[responseAt]))) }

// callCommand executes a command whose request begins with the address of its answer. The answer is
// valid until the next call.
func callCommand[Req, Resp any](k *kernel, cmd uint32, req Req) (*Resp, error) {
	clear(k.page[responseAt:])
	*typedAt[Req](k.page, requestAt+hdrLen) = req
	*typedAt[uint64](k.page, requestAt+hdrLen) = k.responseAddr()
	resp := typedAt[Resp](k.page, responseAt)
	return resp, k.writeCommand(requestAt, commandHeader(cmd, unsafe.Sizeof(req), unsafe.Sizeof(*resp)))
}

// executeCommand executes a command that has no answer.
func executeCommand[Req any](k *kernel, cmd uint32, req Req) error {
	*typedAt[Req](k.page, requestAt+hdrLen) = req
	return k.writeCommand(requestAt, commandHeader(cmd, unsafe.Sizeof(req), 0))
}

// ringDoorbell makes the kernel look into a queue pair's send queue.
func (k *kernel) ringDoorbell(qp uint32) error {
	typedAt[postSend](k.page, doorbellAt+hdrLen).QPHandle = qp
	return k.writeCommand(doorbellAt, *typedAt[cmdHdr](k.page, doorbellAt))
}

// writeCommand writes the command that begins at off. All commands go to the kernel here.
func (k *kernel) writeCommand(off int, h cmdHdr) error {
	*typedAt[cmdHdr](k.page, off) = h
	buf := k.page[off : off+4*int(h.InWords)]
	n, err := k.writeRetrying(buf)
	if err == unix.EACCES { //nolint:errorlint // writeRetrying returns bare errnos
		n, err = Denied(k.fd, k.file, func() (int, error) { return k.writeRetrying(buf) })
	}
	if err == nil && n != len(buf) {
		return fmt.Errorf("wrote %d of %d bytes: %w", n, len(buf), unix.EIO)
	}
	return err
}

// writeRetrying calls write(2), again after EINTR.
func (k *kernel) writeRetrying(buf []byte) (int, error) {
	for {
		n, _, errno := unix.Syscall(unix.SYS_WRITE, uintptr(k.fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
		runtime.KeepAlive(k)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// mapQueue maps the kernel's shared memory at off.
func (k *kernel) mapQueue(off uint64, size int) ([]byte, error) {
	if size <= 0 || off > 1<<62 {
		return nil, fmt.Errorf("a queue of %d bytes at %#x: %w", size, off, unix.EIO)
	}
	mem, err := unix.Mmap(k.fd, int64(off), size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return mem, os.NewSyscallError("mmap", err)
}

// mapMemory maps n bytes of separate memory, which children do not inherit: the kernel has pinned
// the pages, and a copy of them is not pinned.
func mapMemory(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	if err := unix.Madvise(mem, unix.MADV_DONTFORK); err != nil {
		_ = unix.Munmap(mem)
		return nil, os.NewSyscallError("madvise", err)
	}
	return mem, nil
}

// roundToPages rounds up: memory is mapped in whole pages.
func roundToPages(n int) int { return (n + os.Getpagesize() - 1) &^ (os.Getpagesize() - 1) }

// unmapOnce unmaps *mem, once.
func unmapOnce(mem *[]byte) error {
	m := *mem
	*mem = nil
	if m == nil {
		return nil
	}
	return os.NewSyscallError("munmap", unix.Munmap(m))
}

// addressOf returns where the kernel finds mem.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// typedAt returns a T in mapped memory. Out of its bounds it panics, as a slice does.
func typedAt[T any](mem []byte, off int) *T {
	var zero T
	return (*T)(unsafe.Pointer(unsafe.SliceData(mem[off : off+int(unsafe.Sizeof(zero))])))
}

// sizeOf returns T's size in the kernel's memory.
func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// atomicWord returns a field that both sides of a shared queue access, atomically, so that earlier
// writes are visible with it.
func atomicWord[T any](p *T) *atomic.Uint32 {
	_ = [1]struct{}{}[unsafe.Sizeof(*p)-4]
	return (*atomic.Uint32)(unsafe.Pointer(p))
}

// loadAs returns a word's value as its fields.
func loadAs[T any](w *atomic.Uint32) T {
	v := w.Load()
	return *(*T)(unsafe.Pointer(&v))
}

func storeAs[T any](w *atomic.Uint32, v T) { w.Store(*(*uint32)(unsafe.Pointer(&v))) }

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readEvent reads one event: nil, or EAGAIN when there is none, or EIO when the device is
// gone.
func readEvent[T any](fd int, ev *T) error {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(ev)), unsafe.Sizeof(*ev))
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return errno
		case n != unsafe.Sizeof(*ev):
			return unix.EIO
		default:
			return nil
		}
	}
}

// unionOf returns a member of a union.
func unionOf[T, U any](u *U) *T {
	var zero T
	_ = [1]struct{}{}[max(unsafe.Sizeof(zero), unsafe.Sizeof(*u))-unsafe.Sizeof(*u)]
	return (*T)(unsafe.Pointer(u))
}

// Doorbell has siw look into the send queue of a queue pair, by its number at the kernel, through
// an open device file. siw refuses that unless the queue pair is connected. It is for this
// project's own providers.
func Doorbell(fd int, qp uint32) error {
	page := spares.Get().(*[pageLen / 8]uint64)
	defer spares.Put(page)
	k := &kernel{fd: fd, page: unsafe.Slice((*byte)(unsafe.Pointer(page)), pageLen)}
	k.prepareDoorbell()
	err := k.ringDoorbell(qp)
	runtime.KeepAlive(page)
	return err
}
