package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
)

// errWrong marks errors that no fault of the network or of the other process explains.
var errWrong = errors.New("wrong")

func wrongError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errWrong, fmt.Errorf(format, args...))
}

// nameOf returns the kind of an error. expected: the faults explain it.
func nameOf(err error) (name string, expected bool) {
	if errors.Is(err, errWrong) {
		return "wrong", false
	}
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		name = "; " + e.Fate.String()
	}
	for _, k := range []struct {
		is   error
		name string
	}{
		{os.ErrDeadlineExceeded, "deadline"},
		{context.DeadlineExceeded, "deadline"},
		{rdma.ErrPeerLost, "the peer is lost"},
		{unix.ECONNREFUSED, "refused"},
		{unix.ECONNRESET, "reset"},
		{unix.ETIMEDOUT, "timed out"},
		{unix.ENETUNREACH, "no route"},
		{unix.EHOSTUNREACH, "no route"},
		{unix.ENETDOWN, "no route"},
		{unix.EADDRNOTAVAIL, "no address"},
		{unix.ENODEV, "no device"},
		{unix.EPIPE, "the peer has closed"},
		{rpc.ErrDraining, "the server drains"},
		{rpc.ErrUnavailable, "no connection"},
	} {
		if errors.Is(err, k.is) {
			return k.name + name, true
		}
	}
	return "unexpected", false
}
