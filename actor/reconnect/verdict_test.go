package reconnect_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/cmid"
)

// Which failures are worth another attempt.
func TestPermanent(t *testing.T) {
	base := func(err error) cmid.FailureBase { return cmid.FailureBase{Err: err} }
	rejected := func(r rdma.RejectReason, private string) rdma.Failure {
		return &rdma.Rejected{FailureBase: base(unix.ECONNREFUSED), Reason: r, PrivateData: []byte(private)}
	}
	handshake := func(r wire.Refusal) rdma.Failure {
		return &rdma.CommandFailed{FailureBase: base(&rdma.HandshakeError{What: "the peer refuses it", Err: r})}
	}
	for _, tt := range []struct {
		why  string
		f    rdma.Failure
		want bool
	}{
		{"nobody answers", &rdma.Unreachable{FailureBase: base(unix.ETIMEDOUT)}, false},
		{"no route at the moment", &rdma.Unreachable{FailureBase: base(unix.EHOSTUNREACH)}, false},
		{"nobody listens (InfiniBand)", rejected(cmid.RejectInvalidServiceID, ""), false},
		{"nobody listens (iWARP)", rejected(cmid.RejectRefused, ""), false},
		{"the listener has died in the middle", rejected(cmid.RejectReset, ""), false},
		{"the peer's runtime is full, or its owner slow", rejected(cmid.RejectConsumerDefined, ""), false},
		{"the same, padded (InfiniBand)", rejected(cmid.RejectConsumerDefined, "\x00\x00\x00"), false},
		{"the peer's application has said why (InfiniBand)", rejected(cmid.RejectConsumerDefined, "no"), true},
		{"the peer's application has said why (iWARP)", rejected(cmid.RejectReset, "no"), true},
		{"the peer's memory", rejected(cmid.RejectNoResources, ""), false},
		{"the peer's timeout", rejected(cmid.RejectTimeout, ""), false},
		{"the peer remembers an old connection", rejected(cmid.RejectStaleConnection, ""), false},
		{"another transport", rejected(cmid.RejectInvalidTransport, ""), true},
		{"not supported there", rejected(cmid.RejectUnsupported, ""), true},
		{"another MTU", rejected(cmid.RejectInvalidMTU, ""), true},
		{"another depth", rejected(cmid.RejectInsufficientDepth, ""), true},
		{"another RNR count", rejected(cmid.RejectInvalidRNRRetry, ""), true},
		{"another vendor's options", rejected(cmid.RejectVendorOption, ""), true},
		{"the neighbour is silent", &rdma.AddrError{FailureBase: base(unix.ETIMEDOUT)}, false},
		{"the device is gone", &rdma.AddrError{FailureBase: base(unix.ENODEV)}, false},
		{"the address is gone with it", &rdma.CommandFailed{FailureBase: base(unix.EADDRNOTAVAIL)}, false},
		{"the network is gone", &rdma.CommandFailed{FailureBase: base(unix.ENETUNREACH)}, false},
		{"no path", &rdma.RouteError{FailureBase: base(unix.ETIMEDOUT)}, false},
		{"descriptors", &rdma.CommandFailed{FailureBase: base(unix.EMFILE)}, false},
		{"memory", &rdma.CommandFailed{FailureBase: base(&rdma.ResourceError{})}, false},
		{"own mistake", &rdma.CommandFailed{FailureBase: base(unix.EINVAL)}, true},
		{"not allowed", &rdma.CommandFailed{FailureBase: base(unix.EACCES)}, true},
		{"no such key there", &rdma.Rejected{FailureBase: base(&rdma.HandshakeError{What: "no such key"}), Reason: cmid.RejectReset}, false},
		{"tampered with", &rdma.CommandFailed{FailureBase: base(&rdma.HandshakeError{What: "x", Err: unix.EINVAL})}, false},
		{"no IPv6 here", &rdma.CommandFailed{FailureBase: base(unix.EAFNOSUPPORT)}, true},
		{"the peer speaks HTTP", &rdma.ConnectError{FailureBase: base(unix.EINVAL)}, true},
		{"the peer went in the middle", &rdma.ConnectError{FailureBase: base(unix.ECONNRESET)}, false},
		{"no key of ours is known there", handshake(wire.RefusedKey), false},
		{"the peer has no room for a handshake now", handshake(wire.RefusedHandshakes), false},
		{"this address has asked too often", handshake(wire.RefusedRate), false},
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
