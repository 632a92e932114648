package kernel

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	family      = 20      // NETLINK_RDMA
	wait        = 5       // s: for one message
	messageRoom = 1 << 16 // more than the kernel fills
	procRoom    = 1024    // bytes of a file in /proc: what is read of it is in front
	attempts    = 5       // of a table that changes meanwhile
)

// Devices are the names of the kernel's devices.
func Devices() (names []string, err error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	defer s.close()
	devices, err := s.devices()
	for _, d := range devices {
		names = append(names, d.name)
	}
	return names, err
}

// IDs is the kernel's table, of all devices. steady is false if it changed while it was read, again
// and again: then an identifier may be missing, or there twice.
func IDs() (ids []ID, steady bool, err error) {
	s, err := open()
	if err != nil {
		return nil, false, err
	}
	defer s.close()
	devices, err := s.devices()
	if err != nil {
		return nil, false, err
	}
	steady = true
	for _, d := range devices {
		of, err := s.ids(d)
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENODEV): // it is gone meanwhile
			continue
		case errors.Is(err, errChanged):
			steady = false
		case err != nil:
			return nil, false, fmt.Errorf("%s: %w", d.name, err)
		}
		ids = append(ids, of...)
	}
	for i := range ids {
		if ids[i].PID != 0 {
			ids[i].Command = strings.TrimSuffix(string(proc(ids[i].PID, "comm")), "\n")
			ids[i].Process = processOf(proc(ids[i].PID, "status"))
		}
	}
	return ids, steady, nil
}

// proc is the beginning of a file of a thread's, nothing if the thread is gone.
func proc(thread uint32, name string) []byte {
	f, err := os.Open("/proc/" + strconv.FormatUint(uint64(thread), 10) + "/" + name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, procRoom)
	n, err := f.Read(b)
	if err != nil {
		return nil
	}
	return b[:n]
}

// socket asks one question at a time.
type socket struct {
	fd       int
	sequence uint32
}

func open() (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, fmt.Errorf("this kernel has no RDMA devices (module ib_core is not loaded): %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: wait}); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &socket{fd: fd}, nil
}

func (s *socket) close() { _ = unix.Close(s.fd) }

func (s *socket) devices() (all []device, err error) {
	_, err = s.dump(nldevGet, 0, false, func(payload []byte) error {
		d, err := parseDevice(payload)
		if all = append(all, d); len(all) > mostDevices {
			return protocol("more than %d devices", mostDevices)
		}
		return err
	})
	return all, err
}

// ids is the table of one device. With errChanged it is the last that was read.
func (s *socket) ids(d device) (ids []ID, err error) {
	for range attempts {
		ids = ids[:0]
		changed, err := s.dump(nldevResCMID, d.index, true, func(payload []byte) (err error) {
			ids, err = parseIDs(payload, ids)
			return err
		})
		if err != nil || !changed {
			return ids, err
		}
	}
	return ids, errChanged
}

// dump asks, and has message read each message of the answer.
func (s *socket) dump(what uint16, index uint32, withIndex bool, message func([]byte) error) (changed bool, err error) {
	s.sequence++
	r := &reader{sequence: s.sequence, message: message}
	if err := unix.Sendto(s.fd, request(what, s.sequence, index, withIndex), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, fmt.Errorf("netlink send: %w", err)
	}
	b := make([]byte, messageRoom)
	for more := true; more; {
		n, from, err := unix.Recvfrom(s.fd, b, unix.MSG_TRUNC)
		switch at, ok := from.(*unix.SockaddrNetlink); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, fmt.Errorf("netlink receive: %w", err)
		case !ok || at.Pid != 0:
			continue // not of the kernel
		case n > len(b):
			return false, protocol("a message of %d bytes", n)
		}
		if more, err = r.take(b[:n]); err != nil {
			return false, err
		}
	}
	return r.changed, nil
}
