package actor

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// opName is a command's name in messages.
func opName(cmd Command) string {
	switch cmd.(type) {
	case *Dial:
		return "dial"
	case *Serve:
		return "serve"
	case *Close:
		return "close"
	case *Handover:
		return "handover"
	case *Call:
		return "call"
	case *AllocMemory:
		return "alloc memory"
	case *Grant:
		return "grant"
	case *Revoke:
		return "revoke"
	case *FreeMemory:
		return "free memory"
	case *Read:
		return "read"
	case *Write:
		return "write"
	case *FetchAdd:
		return "fetch and add"
	case *CompareSwap:
		return "compare and swap"
	case *cmid.GetAddrInfo:
		return "getaddrinfo"
	}
	return strings.TrimPrefix(cmd.Op().C(), "rdma_")
}

// rdmaName is a type's name as applications spell it.
func rdmaName(typ string) string {
	if rest, ok := strings.CutPrefix(typ, "cmid."); ok {
		return "rdma." + rest
	}
	if rest, ok := strings.CutPrefix(typ, "actor."); ok {
		return "rdma." + rest
	}
	return typ
}

// restore gives a failure the command that the user has sent, in place of the one it came to, and advice that is true of it.
func restore(f Failure, cmd Command) Failure {
	var b *FailureBase
	switch f := f.(type) {
	case *cmid.CommandFailed:
		b = &f.FailureBase
	case *cmid.AddrError:
		b = &f.FailureBase
	case *cmid.RouteError:
		b = &f.FailureBase
	case *cmid.ConnectError:
		b = &f.FailureBase
	case *cmid.Unreachable:
		b = &f.FailureBase
	case *cmid.Rejected:
		b = &f.FailureBase
	case *cmid.AddrInfoError:
		b = &f.FailureBase
	default:
		return f
	}
	b.Command = cmd
	switch cmd.(type) {
	case *Dial, *Serve:
		if _, ok := f.(*cmid.AddrError); ok && errors.Is(f, unix.ETIMEDOUT) {
			b.Remedy = "the neighbour does not answer; " + tryAgain // ResolveAddr could be repeated: this identifier goes
		}
	}
	return f
}

// tryAgain is the advice when the identifier is lost.
const tryAgain = "create a new identifier to try again"
