package iwarp

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// iovLen is how many slices one system call takes.
const iovLen = 256

// sysVec is the memory of vectored system calls, so that they need not allocate it.
type sysVec struct {
	iov [iovLen]unix.Iovec
	msg unix.Msghdr
}

// fill makes bufs the vector. The pointers are typed, so the memory stays alive; release lets go of it.
func (v *sysVec) fill(bufs [][]byte) int {
	n := 0
	for _, b := range bufs[:min(len(bufs), iovLen)] {
		if len(b) > 0 {
			v.iov[n].Base = unsafe.SliceData(b)
			v.iov[n].SetLen(len(b))
			n++
		}
	}
	return n
}

// send is sendmsg(2) on a connected non-blocking socket: bufs, in order, as far as the socket takes them. It does not sleep, so the
// scheduler is not told. On loopback it runs the receiver's half of TCP too; with GOMAXPROCS=1 the scheduler would take the
// processor away in the middle of that and give it back right after: a sixth of the CPU of an echo.
func (v *sysVec) send(fd int, bufs [][]byte, flags int) (int, error) {
	n := v.fill(bufs)
	v.msg.Iov = &v.iov[0]
	v.msg.SetIovlen(n)
	sent, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&v.msg)), uintptr(flags|unix.MSG_NOSIGNAL))
	return v.result(n, sent, errno)
}

// read is readv(2) into bufs, in order. want is how much they hold.
func (v *sysVec) read(fd int, bufs [][]byte) (n, want int, err error) {
	k := v.fill(bufs)
	for _, b := range bufs {
		want += len(b)
	}
	got, _, errno := unix.Syscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(&v.iov[0])), uintptr(k))
	n, err = v.result(k, got, errno)
	return n, want, err
}

func (v *sysVec) result(used int, n uintptr, errno unix.Errno) (int, error) {
	runtime.KeepAlive(v)
	clear(v.iov[:used])
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
