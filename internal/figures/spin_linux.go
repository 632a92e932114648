package main

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// spin compares busy-polling actors with a program that spins on read and write: one CPU for each process.
func spin() ([]row, error) {
	fmt.Printf("64 B echo, two processes on a CPU each, busy polling, %d round trips a run\n", roundTrips)
	p50, _, err := echoRuns(ownCPU, "busy", "spin")
	return []row{atMost("64 B echo, busy poll, against spinning on read and write: p50", 1.35, p50)}, err
}

// spinServer echoes. The socket does not block.
func spinServer([]string) error {
	fd, err := plainServer()
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	var count counter
	b := make([]byte, echoSize)
	for {
		if err := spinRead(fd, b); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		count.message()
		if err := spinWrite(fd, b); err != nil {
			return err
		}
	}
	if err := report(count.result()); err != nil {
		return err
	}
	return waitFor(nil)
}

func spinClient(args []string) error {
	fd, err := plainDial(args[0])
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	meter := newMeter()
	b := make([]byte, echoSize)
	for {
		meter.send()
		if err := spinWrite(fd, b); err != nil {
			return err
		}
		if err := spinRead(fd, b); err != nil {
			return err
		}
		if meter.back() {
			return report(meter.result())
		}
	}
}

// spinRead fills b, asking again until it is all there.
func spinRead(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(fd, b)
		switch {
		case err == nil && n == 0:
			return io.EOF
		case err == nil:
			b = b[n:]
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return err
		}
	}
	return nil
}

func spinWrite(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}
