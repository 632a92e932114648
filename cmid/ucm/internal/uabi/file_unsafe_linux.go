package uabi

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// Kernel executes commands: the device file, or in tests a script.
type Kernel interface {
	// Write is write(2) of frame: a command's header and struct. response is the memory that the
	// response pointer in it leads to.
	Write(frame, response []byte) (int, error)
	// FD is the file's descriptor.
	FD() int
	// Lend calls use with the descriptor. Its number is not used for another file until use has
	// returned, even if Close is called before. EBADF after Close.
	Lend(use func(fd int) error) error
	// Close gives the file up. It does not interrupt a Write that is under way; the file is closed
	// when the last of them has ended.
	Close() error
}

// File is an open rdma_cm channel.
type File struct {
	k      Kernel
	closed atomic.Bool
}

// NewFile is the channel that k is.
func NewFile(k Kernel) *File { return &File{k: k} }

// FromFD is the channel of an open descriptor, which is the File's from now on.
func FromFD(fd int) *File { return &File{k: &device{fd: fd}} }

// FD is the descriptor: readable while there are events.
func (f *File) FD() int { return f.k.FD() }

// Close closes the channel: the kernel destroys the remaining objects, which may wait as DestroyID
// may.
func (f *File) Close() error {
	f.closed.Store(true)
	return f.k.Close()
}

// Closed reports that the channel was closed: its descriptor's number may be another file's. Any
// goroutine.
func (f *File) Closed() bool { return f.closed.Load() }

// device is /dev/infiniband/rdma_cm. Its descriptor stays open until the last Write has returned,
// so that a Write cannot go to another file that has got the same number.
type device struct {
	mu     sync.Mutex
	fd     int
	using  int
	closed bool
}

// Write is the one write(2). A *verbs.CredentialsError means that the kernel takes no commands
// from this thread.
func (d *device) Write(frame, _ []byte) (int, error) {
	if err := d.beginUse(); err != nil {
		return 0, err
	}
	defer d.endUse()
	n, err := unix.Write(d.fd, frame)
	if err == unix.EACCES {
		return uverbs.Denied(d.fd, "rdma_cm", func() (int, error) { return unix.Write(d.fd, frame) })
	}
	return n, err
}

// Lend is for the commands of another channel that name this one.
func (d *device) Lend(use func(fd int) error) error {
	if err := d.beginUse(); err != nil {
		return err
	}
	defer d.endUse()
	return use(d.fd)
}

func (d *device) beginUse() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return unix.EBADF
	}
	d.using++
	return nil
}

func (d *device) endUse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.using--; d.closed && d.using == 0 {
		_ = unix.Close(d.fd)
	}
}

func (d *device) FD() int { return d.fd }

func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return unix.EBADF
	}
	if d.closed = true; d.using > 0 {
		return nil
	}
	return unix.Close(d.fd)
}

// ResponseError reports that the kernel's answer makes no sense. errors.Is finds EPROTO.
type ResponseError struct {
	Command Command
	What    string
}

// Error names the flaw.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("rdma_cm's answer to command %d: %s", e.Command, e.What)
}

// Unwrap gives EPROTO.
func (e *ResponseError) Unwrap() error { return unix.EPROTO }

// maxPaths is how many path records QUERY PATH is given room for: a primary and an alternate one
// in both directions, and two more.
const maxPaths = 6

// scratch is the memory that the kernel reads and writes during one command: it does not move.
type scratch struct {
	frame    [1 + unsafe.Sizeof(WriteCMEvent{})/8]uint64
	response [(8 + maxPaths*unsafe.Sizeof(IBPathRecData{})) / 8]uint64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// noResponse is the place of the response pointer of a command without one.
const noResponse = -1

// executeCommand executes c. response is the offset of the response pointer in In. Parts that are
// missing in the kernel's answer stay as they were in out.
func executeCommand[In, Out any](f *File, c Command, in *In, response int, out *Out) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	resp := bytesOf(&s.response)[:unsafe.Sizeof(*out)]
	*(*Out)(unsafe.Pointer(&s.response)) = *out
	frame := s.putHeader(c, unsafe.Sizeof(*in), unsafe.Sizeof(*out))
	*(*In)(unsafe.Pointer(&s.frame[1])) = *in
	if response != noResponse {
		*(*uint64)(unsafe.Add(unsafe.Pointer(&s.frame[1]), response)) = uint64(uintptr(unsafe.Pointer(&s.response)))
	}
	err := f.writeFrame(c, frame, resp)
	*out = *(*Out)(unsafe.Pointer(&s.response))
	runtime.KeepAlive(s)
	return err
}

// putHeader writes the header of a command with in bytes, and gives the frame.
func (s *scratch) putHeader(c Command, in, out uintptr) []byte {
	*(*CmdHdr)(unsafe.Pointer(&s.frame)) = CmdHdr{Cmd: uint32(c), In: uint16(in), Out: uint16(out)}
	return bytesOf(&s.frame)[:unsafe.Sizeof(CmdHdr{})+in]
}

func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

func (f *File) writeFrame(c Command, frame, response []byte) error {
	for {
		n, err := f.k.Write(frame, response)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n != len(frame):
			return &ResponseError{c, fmt.Sprintf("%d bytes taken of %d", n, len(frame))}
		}
		return nil
	}
}

// SetOption is SET_OPTION. The kernel reads value during the call only.
func (f *File) SetOption(id uint32, level, name uint32, value []byte) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	room := bytesOf(&s.response)
	if len(value) > len(room) {
		room = unsafe.Slice((*byte)(unsafe.Pointer(new([maxOption]byte))), maxOption)
	}
	if len(value) > len(room) {
		return unix.EINVAL
	}
	copy(room, value)
	frame := s.putHeader(CommandSetOption, unsafe.Sizeof(SetOption{}), 0)
	*(*SetOption)(unsafe.Pointer(&s.frame[1])) = SetOption{
		Optval: uint64(uintptr(unsafe.Pointer(&room[0]))), ID: id, Level: level, Optname: name, Optlen: uint32(len(value)),
	}
	pin := pinMemory(&room[0])
	err := f.writeFrame(CommandSetOption, frame, room[:len(value)])
	pin.Unpin()
	runtime.KeepAlive(s)
	return err
}

// maxOption bounds an option's value: 56 path records.
const maxOption = 4096

// pinMemory keeps memory where it is, also if it should be a stack's.
func pinMemory(p *byte) *runtime.Pinner {
	pin := new(runtime.Pinner)
	pin.Pin(p)
	return pin
}
