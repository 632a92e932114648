package rdmanet

import (
	"context"
	"errors"
	"net"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// network is the Net of this package's net.OpErrors.
const network = "rdma"

// failure is an errno with its cause. It is the Err of this package's net.OpErrors, unless that is
// os.ErrDeadlineExceeded or net.ErrClosed.
type failure struct {
	errno unix.Errno
	cause error
}

func (f *failure) Error() string {
	switch {
	case f.cause == nil:
		return f.errno.Error()
	case errors.Is(f.cause, f.errno):
		return f.cause.Error()
	}
	return f.errno.Error() + ": " + f.cause.Error()
}

// Unwrap returns the errno and the cause.
func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.errno}
	}
	return []error{f.errno, f.cause}
}

// Timeout implements net.Error.
func (f *failure) Timeout() bool {
	return f.errno.Timeout() || errors.Is(f.cause, context.DeadlineExceeded)
}

// Temporary implements net.Error. It returns false.
func (f *failure) Temporary() bool { return false }

// setupError returns the error of a Dial or a Listen at addr.
func setupError(op, addr string, err error) *net.OpError {
	errno, known := errors.AsType[unix.Errno](err)
	_, rejected := errors.AsType[*rdma.Rejected](err)
	switch {
	case known:
	case errors.Is(err, context.DeadlineExceeded):
		errno = unix.ETIMEDOUT
	case errors.Is(err, context.Canceled):
		errno = unix.ECANCELED
	case rejected:
		errno = unix.ECONNREFUSED
	default:
		errno = unix.EIO
	}
	e := &net.OpError{Op: op, Net: network, Err: &failure{errno, err}}
	if a, err := rdma.ParseAddr(addr); err == nil {
		e.Addr = netAddr(a)
	}
	return e
}

// resetError returns the error for a connection that has ended without the peer's FIN.
func resetError(cause error) error { return &failure{unix.ECONNRESET, cause} }

// brokenPipeError returns the error of a Write after CloseWrite or after the peer has closed.
func brokenPipeError(cause error) error { return &failure{unix.EPIPE, cause} }

// violationError returns the error for a peer that violates this package's protocol.
func violationError(what string) error { return &failure{unix.EPROTO, errors.New(what)} }

// opError returns the error of one of c's operations.
func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: network, Source: c.local, Addr: c.peer, Err: err}
}
