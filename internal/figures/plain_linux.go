package main

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// plainListen listens on a loopback port and says where.
func plainListen() (fd int, addr netip.AddrPort, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, addr, err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, addr, err
	}
	if err = unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return -1, addr, err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return -1, addr, err
	}
	in := sa.(*unix.SockaddrInet4)
	return fd, netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port)), nil
}

// plainServer prints its address and accepts one connection: a blocking socket without Nagle's delay.
func plainServer() (fd int, err error) {
	l, addr, err := plainListen()
	if err != nil {
		return -1, err
	}
	defer unix.Close(l)
	fmt.Println(addr)
	fd, _, err = unix.Accept4(l, unix.SOCK_CLOEXEC)
	if err != nil {
		return -1, err
	}
	return fd, noDelay(fd)
}

// plainDial connects a blocking socket without Nagle's delay.
func plainDial(addr string) (fd int, err error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return -1, err
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return -1, err
	}
	return fd, noDelay(fd)
}

func noDelay(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) }
