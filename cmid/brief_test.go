package cmid

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// TestBrief: what people and log lines get of a failure, wherever it is in an error. Nothing
// in it differs from one attempt to the next, so that what repeats is seen to.
func TestBrief(t *testing.T) {
	base := FailureBase{
		EventBase: EventBase{ID: 3}, Op: "connect", State: states.Connecting,
		Local: MustAddr("10.0.0.5:40000"), Peer: MustAddr("10.0.0.7:7471"),
		Err: unix.ETIMEDOUT, Remedy: "create a new identifier to try again",
		Legal:   []states.Op{states.OpListen},
		History: []Transition{{states.Idle, 0}, {states.Connecting, time.Second}},
	}
	unreachable := &Unreachable{base}
	rejected := &Rejected{FailureBase: base, PrivateData: []byte("full")}
	rejected.Err = &rejection{RejectRefused}
	alone := &CommandFailed{FailureBase{Op: "create_id", Err: unix.EMFILE}}
	bind := &CommandFailed{FailureBase{Op: "bind_addr", Local: MustAddr("10.0.0.5:1"), Err: unix.EACCES}}
	named := &CommandFailed{FailureBase{Op: "dial", Err: &GAIError{
		Code: EAINoName, Node: "server", Service: "1", Err: errors.New("no such host"), Remedy: "check the spelling",
	}}}
	repeated := &ConnectError{base}
	repeated.Err = errors.New("iwarp: connect 10.0.0.7:7471: no way")
	const short = "connect 10.0.0.7:7471: connection timed out"
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("plain"), "plain"},
		{unreachable, short},
		{fmt.Errorf("round 3: %w, so it ended", unreachable), "round 3: " + short + ", so it ended"},
		{errors.Join(errors.New("first"), fmt.Errorf("then %w", unreachable)), "first; then " + short},
		{fmt.Errorf("both: %w", errors.Join(unreachable, alone)), "both: " + short + "; create_id: too many open files"},
		{fmt.Errorf("%w and %w", alone, unreachable), "create_id: too many open files and " + short},
		{rejected, `connect 10.0.0.7:7471: rejected: nobody listens on that port; the peer says "full"`},
		{bind, "bind_addr 10.0.0.5:1: permission denied"},
		{named, `dial: "server": node not known: no such host`},
		{&GAIError{Code: EAIService, Node: "server", Service: "http"}, `port "http": service not known`},
		{repeated, "connect: iwarp: connect 10.0.0.7:7471: no way"},
	} {
		if got := Brief(c.err); got != c.want {
			t.Errorf("%v\nis briefly %q, want %q", c.err, got, c.want)
		}
	}
}
