package cmid

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// Failure is a failing answer. errors.Is finds the errno in it, errors.As the typed event.
type Failure interface {
	Event
	error
	// Failed returns the command that failed; nil when no command was under way.
	Failed() Command
	// Base returns the part that all failures share. It is not a copy.
	Base() *FailureBase
}

// FailureBase is the part all failures share. Error states the failed operation, the known
// addresses, the state and the cause. Where it applies, Error also states the remedy, the commands
// that would have been legal, and the identifier's previous states, each with the time at which it
// was entered, counted from the identifier's creation.
type FailureBase struct {
	EventBase
	Op          string       // what failed, in librdmacm's terms: "listen", "connect"
	Command     Command      // nil when no command was under way
	State       states.State // when it failed
	Local, Peer Addr
	Err         error       // the cause; wraps an errno
	Remedy      string      // what to do; may be ""
	Legal       []states.Op // what would have been legal instead; nil when the command was legal
	// the identifier's last transitions, oldest first; their times count from its creation
	History []Transition
}

// Transition is one step in an identifier's history: a state, and when it was entered. How long
// the identifier stayed there is the difference to the next one.
type Transition struct {
	State states.State
	At    time.Duration // between the identifier's creation and the transition
}

// String is "connecting at 1ms", rounded to milliseconds.
func (t Transition) String() string {
	return fmt.Sprintf("%v at %v", t.State, t.At.Round(time.Millisecond))
}

// Failed is the command that failed.
func (f *FailureBase) Failed() Command { return f.Command }

// Base is f.
func (f *FailureBase) Base() *FailureBase { return f }

// Unwrap gives the cause.
func (f *FailureBase) Unwrap() error { return f.Err }

// Error is the whole story in one line.
func (f *FailureBase) Error() string {
	var b strings.Builder
	b.WriteString(f.Op)
	switch {
	case !f.Peer.IsZero() && !f.Local.IsZero():
		fmt.Fprintf(&b, " %v -> %v", f.Local, f.Peer)
	case !f.Peer.IsZero():
		fmt.Fprintf(&b, " -> %v", f.Peer)
	case !f.Local.IsZero():
		fmt.Fprintf(&b, " %v", f.Local)
	}
	fmt.Fprintf(&b, " (id %d, %v)", f.ID, f.State)
	if f.Err != nil {
		fmt.Fprintf(&b, ": %v", f.Err)
	}
	if f.Remedy != "" {
		fmt.Fprintf(&b, ": %s", f.Remedy)
	}
	if legal := commandNames(f.Legal); len(legal) > 0 {
		b.WriteString("; legal now: " + strings.Join(legal, ", "))
	}
	if len(f.History) > 1 {
		b.WriteString("; history: ")
		for i, t := range f.History {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(t.String())
		}
	}
	if c := f.errorCode(); c != "" {
		fmt.Fprintf(&b, " [%s]", c)
	}
	return b.String()
}

// commandNames names the commands that may be sent instead. It leaves out the queries that are
// always legal, and what only native InfiniBand or kernels of 2025 have.
func commandNames(legal []states.Op) []string {
	var names []string
	for _, op := range legal {
		name := op.String()
		switch op {
		case states.OpSetTOS, states.OpSetReuseAddr, states.OpClearReuseAddr, states.OpSetAFOnly, states.OpSetAckTimeout:
			name = "SetOption"
		case states.OpQuery, states.OpMigrateID, states.OpInitQPAttrInit, states.OpInitQPAttrReady, states.OpInitQPAttrOther,
			states.OpWriteCMEvent, states.OpCreateQP, states.OpSetIBPath, states.OpResolveAddrInfo:
			continue
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// errorCode returns the term that a C programmer would look up: the errno's name, or the reject
// reason.
func (f *FailureBase) errorCode() string {
	if f.Status > 0 {
		return RejectReason(f.Status).codeText()
	}
	var errno unix.Errno
	if errors.As(f.Err, &errno) {
		if errno == unix.EOPNOTSUPP {
			return "EOPNOTSUPP" // of its two names, the one that librdmacm's manual pages use
		}
		if n := unix.ErrnoName(errno); n != "" {
			return n
		}
		return fmt.Sprint(int(errno))
	}
	return ""
}

// The failures.
type (
	// CommandFailed reports that a command was refused by the state machine or failed immediately,
	// with the kernel's errno (ours).
	CommandFailed struct{ FailureBase }
	// AddrError is RDMA_CM_EVENT_ADDR_ERROR; the identifier is bound again and may resolve again.
	AddrError struct{ FailureBase }
	// RouteError is RDMA_CM_EVENT_ROUTE_ERROR; the identifier may resolve the route again.
	RouteError struct{ FailureBase }
	// ConnectError is RDMA_CM_EVENT_CONNECT_ERROR.
	ConnectError struct{ FailureBase }
	// Unreachable is RDMA_CM_EVENT_UNREACHABLE, as the answer to Connect and Accept: see
	// NeighbourChanged.
	Unreachable struct{ FailureBase }
	// Rejected is RDMA_CM_EVENT_REJECTED.
	Rejected struct {
		FailureBase
		Reason      RejectReason
		PrivateData []byte
	}
	// MulticastError is RDMA_CM_EVENT_MULTICAST_ERROR.
	MulticastError struct{ FailureBase }
	// AddrInfoError answers GetAddrInfo and ResolveIBService: RDMA_CM_EVENT_ADDRINFO_ERROR.
	AddrInfoError struct{ FailureBase }
	// ListenFailed reports that a listener no longer gets requests, because the system has taken
	// its socket: a tool such as `ss -K` has shut it down (ours). rdma_cm has no such event, so the
	// state stays; only DestroyID helps.
	ListenFailed struct{ FailureBase }
)

// Error is the whole story in one line, with the peer application's reason from its private data.
func (r *Rejected) Error() string { return r.FailureBase.Error() + reasonText(r.PrivateData) }

func (*CommandFailed) Kind() states.Kind  { return states.KindCommandFailed }
func (*AddrError) Kind() states.Kind      { return states.KindAddrError }
func (*RouteError) Kind() states.Kind     { return states.KindRouteError }
func (*ConnectError) Kind() states.Kind   { return states.KindConnectError }
func (*Unreachable) Kind() states.Kind    { return states.KindUnreachable }
func (*Rejected) Kind() states.Kind       { return states.KindRejected }
func (*MulticastError) Kind() states.Kind { return states.KindMulticastError }
func (*AddrInfoError) Kind() states.Kind  { return states.KindAddrInfoError }
func (*ListenFailed) Kind() states.Kind   { return states.KindListenFailed }

// opName returns a command's name in messages: librdmacm's without rdma_.
func opName(op states.Op) string { return strings.TrimPrefix(op.C(), "rdma_") }

// errnoRemedy returns advice on an errno that users meet.
func errnoRemedy(op states.Op, err error) string {
	is := func(e unix.Errno) bool { return errors.Is(err, e) }
	switch {
	case op == states.OpBindAddr && is(unix.EADDRINUSE):
		return "another identifier or program has the port: choose another, or port 0"
	case op == states.OpBindAddr && is(unix.EADDRNOTAVAIL):
		return "not an address of this host: see `ip addr`"
	case op == states.OpBindAddr && is(unix.EACCES):
		return "ports below 1024 need CAP_NET_BIND_SERVICE"
	case op == states.OpResolveAddr && is(unix.ENETUNREACH):
		return "no route to that address: see `ip route get`"
	case op == states.OpResolveAddr && is(unix.ETIMEDOUT):
		return "the neighbour does not answer; the identifier is bound and may resolve again"
	case op == states.OpResolveRoute && is(unix.ETIMEDOUT):
		return "nobody has answered with the path (on InfiniBand: does a subnet manager run?); the address stays resolved, ResolveRoute may be asked again"
	case op == states.OpConnect && is(unix.ETIMEDOUT):
		return "the peer does not answer; create a new identifier to try again"
	case is(unix.EMFILE):
		return "this process has too many open files: see `ulimit -n`"
	}
	return ""
}
