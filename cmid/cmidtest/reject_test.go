package cmidtest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// A Reject that does not fit into a message was never sent: the request still waits, and is accepted.
func TestAcceptAfterARejectThatFails(t *testing.T) {
	both(t, func(w *world, _ *Fabric) {
		c, _ := w.requested(0, nil, nil)
		before := len(c.passive.History())
		w.wantErr("reject", c.passive.Reject(make([]byte, c.passive.Limits().RejectData+1)), unix.EINVAL)
		if s := c.passive.State(); s != states.ConnectRequested || len(c.passive.History()) != before {
			w.Fatalf("the request is %v, with the history %v", s, c.passive.History())
		}
		c.bq = w.queues(c.passive, 0)
		w.must(c.passive.Accept(nil, nil))
		next[*cmid.Established](w.a, c.active)
		next[*cmid.Established](w.b, c.passive)
	})
}
