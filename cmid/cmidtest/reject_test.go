package cmidtest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
)

// A Reject that does not fit into a message was never sent: the request still waits, and is
// accepted.
func TestAcceptAfterARejectThatFails(t *testing.T) {
	both(t, func(w *sides.World, _ *Fabric) {
		c, _ := w.Requested(0, nil, nil)
		before := len(c.Passive.History())
		w.WantErr("reject", c.Passive.Reject(make([]byte, c.Passive.Limits().RejectData+1)), unix.EINVAL)
		if s := c.Passive.State(); s != states.ConnectRequested || len(c.Passive.History()) != before {
			w.Fatalf("the request is %v, with the history %v", s, c.Passive.History())
		}
		c.BQ = w.Queues(c.Passive, 0)
		w.Must(c.Passive.Accept(nil, nil))
		sides.Next[*cmid.Established](w.A, c.Active)
		sides.Next[*cmid.Established](w.B, c.Passive)
	})
}
