package reconnect

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

// Permanent is the default of Config.Permanent. It reports whether a failure is not worth another
// attempt. Those are:
//
//   - a rejection by the peer's application with private data, which explains it. A rejection
//     without any is worth another attempt: the peer may be overloaded, or has not answered in
//     time;
//   - rejections whose reason will be the same the next time: unsupported, invalid transport, MTU,
//     depth or RNR count, vendor option;
//   - a mistake of the caller, and operations that are not permitted or not supported here: EINVAL,
//     EMSGSIZE, EACCES, EPERM, EAFNOSUPPORT, EPROTONOSUPPORT, EOPNOTSUPP; a name service that does
//     not know the port's name or the flags;
//   - the runtime's Shutdown.
//
// Everything else is worth another attempt: there is no listener or no answer, the device is gone,
// descriptors or memory have run out, the name is not known yet. So is a handshake that was refused
// (rdma.HandshakeError), although its errno is EACCES: its refusal is not authenticated, so that
// any machine on the path can forge it, and keys change while there are connections. The pauses
// grow as after every failure, and Down.Err and Links report the cause.
func Permanent(f rdma.Failure) bool {
	if errors.Is(f, rdma.ErrShutdown) {
		return true
	}
	var handshake *rdma.HandshakeError
	if errors.As(f, &handshake) {
		return false
	}
	switch f := f.(type) {
	case *rdma.Rejected:
		return permanentReject(f)
	case *rdma.Unreachable:
		return false
	case *rdma.AddrInfoError:
		for _, code := range []cmid.EAI{cmid.EAIService, cmid.EAIBadFlags, cmid.EAIFamily, cmid.EAISockType} {
			if errors.Is(f, code) {
				return true
			}
		}
	}
	for _, errno := range []unix.Errno{
		unix.EINVAL, unix.EMSGSIZE, unix.EACCES, unix.EPERM, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.EOPNOTSUPP,
	} {
		if errors.Is(f, errno) {
			return true
		}
	}
	return false
}

func permanentReject(r *rdma.Rejected) bool {
	switch r.Reason {
	case cmid.RejectConsumerDefined, cmid.RejectReset:
		// iWARP does not transmit the reason: a rejection by the application is RejectReset there
		return len(bytes.Trim(r.PrivateData, "\x00")) > 0 // InfiniBand pads
	case cmid.RejectUnsupported, cmid.RejectInvalidTransport, cmid.RejectInvalidMTU, cmid.RejectInsufficientDepth,
		cmid.RejectInvalidRNRRetry, cmid.RejectVendorOption:
		return true
	}
	return false
}
