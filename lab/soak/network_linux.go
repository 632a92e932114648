package main

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// The addresses of the two ends, in separate namespaces.
const (
	serverIP = "10.77.0.1"
	clientIP = "10.77.0.2"
	mtu      = 9000 // fewer packets to forward than with Ethernet's MTU
)

// namespace is a network namespace of one thread. It has no name, so it ends with its thread and
// the processes that were started in it, also when this process is killed.
type namespace struct{ do chan func() }

// newNamespace creates a namespace that contains only the loopback interface, which is down.
func newNamespace() (*namespace, error) {
	n := &namespace{make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- fmt.Errorf("a network namespace: %w (this needs root)", err)
			return
		}
		made <- nil
		for f := range n.do {
			f()
		}
	}()
	if err := <-made; err != nil {
		return nil, err
	}
	return n, nil
}

// runInside calls f in the namespace. A process that f starts belongs to it.
func (n *namespace) runInside(f func() error) error {
	done := make(chan error)
	n.do <- func() { done <- f() }
	return <-done
}

func (n *namespace) close() { close(n.do) }

// createTUN creates a network interface in the namespace. Its packets are read from and written to
// the returned descriptor.
func (n *namespace) createTUN(name, ip string) (fd int, err error) {
	err = n.runInside(func() error {
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return fmt.Errorf("/dev/net/tun: %w", err)
		}
		if err := errors.Join(makeTun(fd, name), setFlags("lo", true), setUp(name, ip)); err != nil {
			return errors.Join(fmt.Errorf("interface %s: %w", name, err), unix.Close(fd))
		}
		return nil
	})
	return fd, err
}

func makeTun(fd int, name string) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	return unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
}

// setUp sets an interface's address, and sets it up.
func setUp(name, ip string) error {
	address := func(a net.IP) func(*unix.Ifreq) error {
		return func(r *unix.Ifreq) error { return r.SetInet4Addr(a.To4()) }
	}
	return errors.Join(
		configureInterface(name, unix.SIOCSIFADDR, address(net.ParseIP(ip))),
		configureInterface(name, unix.SIOCSIFNETMASK, address(net.IPv4(255, 255, 255, 0))),
		configureInterface(name, unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(mtu); return nil }),
		setFlags(name, true),
	)
}

// setFlags sets an interface up or down.
func setFlags(name string, up bool) error {
	return configureInterface(name, unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error {
		if up {
			r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		}
		return nil
	})
}

// configureInterface sets a property of an interface in this thread's namespace: netdevice(7).
func configureInterface(name string, op uint, fill func(*unix.Ifreq) error) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := fill(req); err != nil {
		return err
	}
	return unix.IoctlIfreq(s, op, req)
}
