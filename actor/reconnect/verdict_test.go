package reconnect_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/cmid"
)

// Which failures are worth another attempt.
func TestPermanent(t *testing.T) {
	base := func(err error) rdma.FailureBase { return rdma.FailureBase{Err: err} }
	rejected := func(r rdma.RejectReason, private string) rdma.Failure {
		return &rdma.Rejected{FailureBase: base(unix.ECONNREFUSED), Reason: r, PrivateData: []byte(private)}
	}
	for _, tt := range []struct {
		why  string
		f    rdma.Failure
		want bool
	}{
		{"nobody answers", &rdma.Unreachable{FailureBase: base(unix.ETIMEDOUT)}, false},
		{"no route at the moment", &rdma.Unreachable{FailureBase: base(unix.EHOSTUNREACH)}, false},
		{"nobody listens (InfiniBand)", rejected(rdma.RejectInvalidServiceID, ""), false},
		{"nobody listens (iWARP)", rejected(rdma.RejectRefused, ""), false},
		{"the listener has died in the middle", rejected(rdma.RejectReset, ""), false},
		{"the peer's runtime is full, or its owner slow", rejected(rdma.RejectConsumerDefined, ""), false},
		{"the same, padded (InfiniBand)", rejected(rdma.RejectConsumerDefined, "\x00\x00\x00"), false},
		{"the peer's application has said why (InfiniBand)", rejected(rdma.RejectConsumerDefined, "no"), true},
		{"the peer's application has said why (iWARP)", rejected(rdma.RejectReset, "no"), true},
		{"the peer's memory", rejected(rdma.RejectNoResources, ""), false},
		{"the peer's timeout", rejected(rdma.RejectTimeout, ""), false},
		{"the peer remembers an old connection", rejected(rdma.RejectStaleConnection, ""), false},
		{"another transport", rejected(rdma.RejectInvalidTransport, ""), true},
		{"not supported there", rejected(rdma.RejectUnsupported, ""), true},
		{"another MTU", rejected(rdma.RejectInvalidMTU, ""), true},
		{"another depth", rejected(rdma.RejectInsufficientDepth, ""), true},
		{"another RNR count", rejected(rdma.RejectInvalidRNRRetry, ""), true},
		{"another vendor's options", rejected(rdma.RejectVendorOption, ""), true},
		{"the neighbour is silent", &rdma.AddrError{FailureBase: base(unix.ETIMEDOUT)}, false},
		{"the device is gone", &rdma.AddrError{FailureBase: base(unix.ENODEV)}, false},
		{"the address is gone with it", &rdma.CommandFailed{FailureBase: base(unix.EADDRNOTAVAIL)}, false},
		{"the network is gone", &rdma.CommandFailed{FailureBase: base(unix.ENETUNREACH)}, false},
		{"no path", &rdma.RouteError{FailureBase: base(unix.ETIMEDOUT)}, false},
		{"descriptors", &rdma.CommandFailed{FailureBase: base(unix.EMFILE)}, false},
		{"memory", &rdma.CommandFailed{FailureBase: base(&rdma.ResourceError{})}, false},
		{"own mistake", &rdma.CommandFailed{FailureBase: base(unix.EINVAL)}, true},
		{"not allowed", &rdma.CommandFailed{FailureBase: base(unix.EACCES)}, true},
		{"no IPv6 here", &rdma.CommandFailed{FailureBase: base(unix.EAFNOSUPPORT)}, true},
		{"the peer speaks HTTP", &rdma.ConnectError{FailureBase: base(unix.EINVAL)}, true},
		{"the peer went in the middle", &rdma.ConnectError{FailureBase: base(unix.ECONNRESET)}, false},
		{"shut down", &rdma.CommandFailed{FailureBase: base(fmt.Errorf("%w (%w)", rdma.ErrShutdown, unix.ESHUTDOWN))}, true},
		{"the name server is away", &rdma.AddrInfoError{FailureBase: base(&cmid.GAIError{Code: cmid.EAIAgain})}, false},
		{"the name is not known yet", &rdma.AddrInfoError{FailureBase: base(&cmid.GAIError{Code: cmid.EAINoName})}, false},
		{"no such port name", &rdma.AddrInfoError{FailureBase: base(&cmid.GAIError{Code: cmid.EAIService})}, true},
	} {
		if got := reconnect.Permanent(tt.f); got != tt.want {
			t.Errorf("%s: permanent %v, want %v", tt.why, got, tt.want)
		}
	}
}
