package sockets

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Linux is the Stack of this process. The zero value is ready. It holds the arguments of system
// calls, so that a call need not allocate them.
type Linux struct {
	iov  [MaxBuffers]unix.Iovec
	msg  unix.Msghdr
	name unix.RawSockaddrAny

	ports ports
	size  uint32 // length of name
	in4   unix.SockaddrInet4
	in6   unix.SockaddrInet6
}

// setVector sets the vector to bufs. The pointers are typed, so the memory stays alive until result
// clears them.
func (v *Linux) setVector(bufs [][]byte) int {
	n := 0
	for _, b := range bufs[:min(len(bufs), MaxBuffers)] {
		if len(b) > 0 {
			v.iov[n].Base = unsafe.SliceData(b)
			v.iov[n].SetLen(len(b))
			n++
		}
	}
	return n
}

// Send is sendmsg(2) on a connected non-blocking socket. It sends bufs in order, as far as the
// socket has room. The call does not block, so it bypasses the Go scheduler. On loopback the call
// also runs the receiver's half of TCP. With GOMAXPROCS=1 the scheduler would take the processor
// away in the middle of that and return it right after. This would cost a sixth of the CPU time of
// an echo.
func (v *Linux) Send(fd int, bufs [][]byte, flags int) (int, error) {
	if len(bufs) == 1 { // sendto(2): the kernel need not fetch a header and a vector
		b := bufs[0]
		sent, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			uintptr(flags|unix.MSG_NOSIGNAL), 0, 0)
		return v.vectorResult(0, sent, errno)
	}
	n := v.setVector(bufs)
	v.msg.Iov = &v.iov[0]
	v.msg.SetIovlen(n)
	sent, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&v.msg)), uintptr(flags|unix.MSG_NOSIGNAL))
	return v.vectorResult(n, sent, errno)
}

// Recv is recv(2) on a non-blocking socket, which does not block either.
func (*Linux) Recv(fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Readv is readv(2) into bufs, in order.
func (v *Linux) Readv(fd int, bufs [][]byte) (int, error) {
	k := v.setVector(bufs)
	n, _, errno := unix.Syscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(&v.iov[0])), uintptr(k))
	return v.vectorResult(k, n, errno)
}

func (v *Linux) vectorResult(used int, n uintptr, errno unix.Errno) (int, error) {
	runtime.KeepAlive(v)
	clear(v.iov[:used])
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Accept is accept4(2). The function of x/sys is not used because it queries the socket's protocol
// with an additional system call.
func (v *Linux) Accept(fd int) (int, unix.Sockaddr, error) {
	v.size = unix.SizeofSockaddrAny
	n, _, errno := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&v.name)), uintptr(unsafe.Pointer(&v.size)),
		sockFlags, 0, 0)
	if errno != 0 {
		return -1, nil, errno
	}
	return int(n), v.toSockaddr(), nil
}

// Local is getsockname(2).
func (v *Linux) Local(fd int) (unix.Sockaddr, error) { return v.getName(unix.SYS_GETSOCKNAME, fd) }

// Peer is getpeername(2).
func (v *Linux) Peer(fd int) (unix.Sockaddr, error) { return v.getName(unix.SYS_GETPEERNAME, fd) }

func (v *Linux) getName(trap uintptr, fd int) (unix.Sockaddr, error) {
	v.size = unix.SizeofSockaddrAny
	_, _, errno := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&v.name)), uintptr(unsafe.Pointer(&v.size)))
	if errno != 0 {
		return nil, errno
	}
	return v.toSockaddr(), nil
}

// toSockaddr converts name; it returns nil if that is not an IP address.
func (v *Linux) toSockaddr() unix.Sockaddr {
	port := func(p *uint16) int { b := (*[2]byte)(unsafe.Pointer(p)); return int(b[0])<<8 | int(b[1]) }
	switch v.name.Addr.Family {
	case unix.AF_INET:
		raw := (*unix.RawSockaddrInet4)(unsafe.Pointer(&v.name))
		v.in4.Port, v.in4.Addr = port(&raw.Port), raw.Addr
		return &v.in4
	case unix.AF_INET6:
		raw := (*unix.RawSockaddrInet6)(unsafe.Pointer(&v.name))
		v.in6.Port, v.in6.Addr, v.in6.ZoneId = port(&raw.Port), raw.Addr, raw.Scope_id
		return &v.in6
	}
	return nil
}

// Disconnect removes a datagram socket's peer, address and port.
func (v *Linux) Disconnect(fd int) error {
	v.name.Addr.Family = unix.AF_UNSPEC
	_, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&v.name)), unsafe.Sizeof(v.name.Addr))
	if errno != 0 {
		return errno
	}
	return nil
}
