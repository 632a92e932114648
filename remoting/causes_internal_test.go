package remoting

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/cmid"
)

// An attempt that the other node has answered is no failure. A shortage at this node is one, also
// if its errno is EAGAIN.
func TestTransientCauses(t *testing.T) {
	busy := &rdma.CommandFailed{FailureBase: cmid.FailureBase{Err: fmt.Errorf("create_qp: %w", unix.EAGAIN)}}
	for _, c := range []struct {
		err       error
		transient bool
	}{
		{reconnect.ErrSimultaneous, true},
		{reconnect.ErrElsewhere, true},
		{reconnect.ErrStale, true},
		{reconnect.ErrAgain, true},
		{fmt.Errorf("%w: %w", reconnect.ErrAgain, errors.New("rejected")), true},
		{errLate, true},
		{busy, false},
		{unix.EAGAIN, false},
		{reconnect.ErrWrongIdentity, false},
		{&rdma.HandshakeError{}, false},
		{nil, false},
	} {
		if got := isTransient(c.err); got != c.transient {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
