package reconnect

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

// Permanent is the default of Config.Permanent. Not worth another attempt are:
//
//   - a rejection by the peer's application that says why in private data, which is a verdict; one
//     without (it is overloaded, or has not answered in time) is not;
//   - rejections that name a difference which stays: unsupported, invalid transport, MTU, depth or
//     RNR count, vendor option;
//   - a mistake of the caller's, and what is not permitted or not supported here: EINVAL,
//     EMSGSIZE, EACCES, EPERM, EAFNOSUPPORT, EPROTONOSUPPORT, EOPNOTSUPP; a name service that does
//     not know the port's name or the flags;
//   - the runtime's Shutdown.
//
// All else is: nobody listens, nobody answers, the device is gone, descriptors or memory have run
// out, the name is not known yet.
func Permanent(f rdma.Failure) bool {
	if errors.Is(f, rdma.ErrShutdown) {
		return true
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
		// on iWARP the reason does not travel: the application's is ECONNRESET
		return len(bytes.Trim(r.PrivateData, "\x00")) > 0 // InfiniBand pads
	case cmid.RejectUnsupported, cmid.RejectInvalidTransport, cmid.RejectInvalidMTU, cmid.RejectInsufficientDepth,
		cmid.RejectInvalidRNRRetry, cmid.RejectVendorOption:
		return true
	}
	return false
}
