package cmid

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// EAI is an error code of rdma_getaddrinfo(3), in glibc's numbering. It is an error, so
// errors.Is(err, EAINoName) works.
type EAI int32

// The codes.
const (
	EAIBadFlags EAI = -1 // EAI_BADFLAGS: a hint flag that does not exist
	EAINoName   EAI = -2 // EAI_NONAME: the node is not known, or there is nothing to look up
	// EAI_AGAIN: the name server failed for the moment, or the deadline passed
	EAIAgain  EAI = -3
	EAIFail   EAI = -4 // EAI_FAIL: the name server failed for good
	EAINoData EAI = -5 // EAI_NODATA: the node exists and has no address
	EAIFamily EAI = -6 // EAI_FAMILY: no such address family here
	// EAI_SOCKTYPE, the man page's EAI_QPTYPE: queue pair type and port space contradict each
	// other
	EAISockType   EAI = -7
	EAIService    EAI = -8  // EAI_SERVICE: the service is not known for the queue pair type
	EAIAddrFamily EAI = -9  // EAI_ADDRFAMILY: the node has addresses, none of the family asked for
	EAIMemory     EAI = -10 // EAI_MEMORY: never returned, Go has no failing allocation
	EAISystem     EAI = -11 // EAI_SYSTEM: GAIError.Err has the errno
)

var eaiText = map[EAI][2]string{
	EAIBadFlags:   {"EAI_BADFLAGS", "unknown flag in the hints"},
	EAINoName:     {"EAI_NONAME", "node not known"},
	EAIAgain:      {"EAI_AGAIN", "no answer from the name server for now"},
	EAIFail:       {"EAI_FAIL", "the name server failed"},
	EAINoData:     {"EAI_NODATA", "the node has no address"},
	EAIFamily:     {"EAI_FAMILY", "address family not supported"},
	EAISockType:   {"EAI_SOCKTYPE", "queue pair type and port space contradict each other"},
	EAIService:    {"EAI_SERVICE", "service not known"},
	EAIAddrFamily: {"EAI_ADDRFAMILY", "the node has no address of this family"},
	EAIMemory:     {"EAI_MEMORY", "out of memory"},
	EAISystem:     {"EAI_SYSTEM", "system error"},
}

// Name is the C constant's name: "EAI_NONAME".
func (c EAI) Name() string {
	if t, ok := eaiText[c]; ok {
		return t[0]
	}
	return fmt.Sprintf("EAI(%d)", int32(c))
}

// Error describes the code in words.
func (c EAI) Error() string {
	if t, ok := eaiText[c]; ok {
		return t[1]
	}
	return c.Name()
}

// MarshalText is Error's text.
func (c EAI) MarshalText() ([]byte, error) { return []byte(c.Error()), nil }

// GAIError is the type of every error of LookupAddrInfo: the request, the code, the cause and the
// remedy. errors.Is finds the EAI code, and the errno where librdmacm returns -1 and sets errno.
type GAIError struct {
	Code          EAI
	Node, Service string
	Err           error  // the cause; may be nil
	Remedy        string // what to do
}

// Error is the whole story in one line.
func (e *GAIError) Error() string {
	var b strings.Builder
	b.WriteString("getaddrinfo")
	if e.Node != "" {
		fmt.Fprintf(&b, " node %q", e.Node)
	}
	if e.Service != "" {
		fmt.Fprintf(&b, " service %q", e.Service)
	}
	fmt.Fprintf(&b, ": %v", error(e.Code))
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Remedy != "" {
		fmt.Fprintf(&b, ": %s", e.Remedy)
	}
	fmt.Fprintf(&b, " [%s", e.Code.Name())
	var errno unix.Errno
	if errors.As(e.Err, &errno) {
		if n := unix.ErrnoName(errno); n != "" {
			fmt.Fprintf(&b, ", %s", n)
		}
	}
	b.WriteString("]")
	return b.String()
}

// Unwrap returns the code and the cause.
func (e *GAIError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// lookupError maps an error of net.Resolver. notFound is the code for a name that does not exist.
func lookupError(err error, notFound EAI) *GAIError {
	var (
		dns   *net.DNSError
		addr  *net.AddrError
		errno unix.Errno
	)
	switch {
	case errors.Is(err, context.Canceled):
		return &GAIError{Code: EAISystem, Err: fmt.Errorf("%w: %w", unix.ECANCELED, err), Remedy: "the caller cancelled it"}
	case errors.Is(err, context.DeadlineExceeded):
		return &GAIError{Code: EAIAgain, Err: fmt.Errorf("%w: %w", unix.ETIMEDOUT, err), Remedy: "try again later or with a longer deadline"}
	case errors.As(err, &dns) && dns.IsNotFound, errors.As(err, &addr):
		return &GAIError{Code: notFound, Err: err}
	case errors.As(err, &errno):
		return &GAIError{Code: EAISystem, Err: err, Remedy: "see the errno"}
	case dns != nil && (dns.IsTimeout || dns.IsTemporary):
		return &GAIError{Code: EAIAgain, Err: err, Remedy: "try again later"}
	}
	return &GAIError{Code: EAIFail, Err: err, Remedy: "check the name server, or give an IP address"}
}
