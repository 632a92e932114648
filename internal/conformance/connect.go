package conformance

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
)

// connectScenarios test rdma_connect(3), rdma_accept(3), rdma_reject(3) and rdma_establish(3).
var connectScenarios = scenarios{
	"private data": func(w *world) {
		c, ev := w.Requested(0, []byte("question"), nil)
		lim := c.Active.Limits()
		w.wantData("connect", ev.PrivateData, "question", lim.ConnectData)
		w.Queues(c.Passive, 0)
		w.Must(c.Passive.Accept([]byte("answer"), nil))
		w.wantData("accept", sides.Next[*cmid.Established](w.A, c.Active).PrivateData, "answer", lim.AcceptData)
		if ev := sides.Next[*cmid.Established](w.B, c.Passive); len(ev.PrivateData) != 0 {
			w.Errorf("the passive side has private data %q: the active side sends none here", ev.PrivateData)
		}
	},
	"private data at the limit": func(w *world) {
		lim := w.Limits()
		question, answer := strings.Repeat("q", lim.ConnectData), strings.Repeat("a", lim.AcceptData)
		c, ev := w.Requested(0, []byte(question), nil)
		w.wantData("connect", ev.PrivateData, question, lim.ConnectData)
		w.Queues(c.Passive, 0)
		w.Must(c.Passive.Accept([]byte(answer), nil))
		w.wantData("accept", sides.Next[*cmid.Established](w.A, c.Active).PrivateData, answer, lim.AcceptData)
	},
	"connect over the limit": func(w *world) {
		_, id := w.Pair(tcp)
		w.Queues(id, 0)
		w.WantErrIn("connect, which may be tried again", id, id.Connect(make([]byte, id.Limits().ConnectData+1), nil), unix.EINVAL, states.RouteResolved)
		w.Must(id.Connect(nil, nil))
		w.B.Request()
	},
	"accept over the limit rejects": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Queues(c.Passive, 0)
		w.WantErr("accept", c.Passive.Accept(make([]byte, c.Passive.Limits().AcceptData+1), nil), unix.EINVAL)
		w.WantRejected(c.Active, cmid.RejectConsumerDefined)
		w.WantState("and is over", c.Passive, states.Failed)
	},
	"reject": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Must(c.Passive.Reject([]byte("no")))
		w.wantData("reject", w.WantRejected(c.Active, cmid.RejectConsumerDefined), "no", c.Passive.Limits().RejectData)
		w.WantErr("accept after reject", c.Passive.Accept(nil, nil), unix.EINVAL)
		w.WantQuiet("a reject has no answer")
	},
	"reject over the limit": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.WantErr("reject", c.Passive.Reject(make([]byte, c.Passive.Limits().RejectData+1)), unix.EINVAL)
	},
	"parameters change sides": func(w *world) {
		_, ev := w.Requested(0, nil, &cmid.ConnParam{ResponderResources: 3, InitiatorDepth: 5, RNRRetryCount: 7})
		if ev.Param.ResponderResources != 5 || ev.Param.InitiatorDepth != 3 {
			w.Errorf("%+v: the reads one side sends are those the other answers", ev.Param)
		}
	},
	"needs a queue pair": func(w *world) {
		w.skipIf(!w.IWARP, "on InfiniBand the owner may have one of its own")
		_, id := w.Pair(tcp)
		w.WantErrIn("connect, which may be tried again", id, id.Connect(nil, nil), unix.EINVAL, states.RouteResolved)
		w.Queues(id, 0)
		w.Must(id.Connect(nil, nil))
		child, _ := w.B.Request()
		w.WantErr("accept", child.Accept(nil, nil), unix.EINVAL)
		w.WantRejected(id, cmid.RejectConsumerDefined)
	},
	"one queue pair": func(w *world) {
		w.Listener(tcp, sides.Any4(0))
		id := w.A.Create(tcp)
		if _, err := id.CreateQP(qpAttr(nil)); err == nil {
			w.Error("create_qp without a device")
		}
		id = w.Resolved(tcp, w.Target())
		q := w.Queues(id, 0)
		w.WantErr("a second create_qp", sides.Err(id.CreateQP(qpAttr(q))), unix.EINVAL)
	},
	"response and establish": func(w *world) {
		w.skipIf(w.IWARP, "iWARP has no third step")
		_, id := w.Pair(tcp)
		ours, theirs := sides.FreshQPN(), sides.FreshQPN()
		w.Must(id.Connect(nil, &cmid.ConnParam{QPNum: ours}))
		child, ev := w.B.Request()
		if ev.Param.QPNum != ours {
			w.Errorf("queue pair %d, want %d", ev.Param.QPNum, ours)
		}
		w.Must(child.Accept([]byte("x"), &cmid.ConnParam{QPNum: theirs}))
		resp := sides.Next[*cmid.ConnectResponse](w.A, id)
		w.wantData("accept", resp.PrivateData, "x", child.Limits().AcceptData)
		if resp.Param.QPNum != theirs {
			w.Errorf("queue pair %d, want %d", resp.Param.QPNum, theirs)
		}
		w.WantQuiet("the passive side waits for the owner")
		w.Must(id.Establish())
		sides.Next[*cmid.Established](w.B, child)
		w.WantErr("established already", child.Notify(false), unix.EISCONN)
		w.WantQuiet("establish has no event")
	},
	"peer gone before accept": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Must(c.Active.Destroy())
		w.WantQuiet("nobody is notified")
		w.Queues(c.Passive, 0)
		if w.hasDeviation(DestroyAwaitsAnswer) {
			w.Must(c.Passive.Accept(nil, nil))
			sides.Next[*cmid.Established](w.B, c.Passive)
			sides.Next[*cmid.Disconnected](w.B, c.Passive)
			return
		}
		want := unix.EINVAL
		if w.IWARP {
			want = unix.ECONNRESET
		}
		err := c.Passive.Accept(nil, nil)
		if err == nil { // a device that does not wait finds out later
			err = sides.Next[cmid.Failure](w.B, c.Passive)
		}
		if !w.IWARP && w.Clock == nil && errors.Is(err, unix.ECONNREFUSED) {
			want = unix.ECONNREFUSED // a busy machine read the peer's REJ after the accept
		}
		w.WantErr("accept", err, want)
		w.WantState("and is over", c.Passive, states.Failed)
	},
	"child destroyed": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Must(c.Passive.Destroy())
		w.WantRejected(c.Active, cmid.RejectConsumerDefined)
	},
	"vendor option": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Must(doCommand(c.Passive, &cmid.Reject{VendorECE: true}))
		w.WantRejected(c.Active, cmid.RejectVendorOption)
	},
	"nobody answers": func(w *world) {
		w.skipIf(w.Clock == nil, "takes as long as the device's clocks")
		c, _ := w.Requested(0, nil, nil)
		if !w.IWARP { // the peer's kernel asks for more time
			w.Within(175*time.Second, 0, func() bool { return len(w.A.Heard) > 0 })
			w.WantQuiet("a request may be answered minutes later")
			w.Must(c.Passive.Accept(nil, nil))
			w.Established(c)
			return
		}
		w.WantErrIn("connect, which is over", c.Active, sides.Next[*cmid.Unreachable](w.A, c.Active), unix.ETIMEDOUT, states.Failed)
	},
}

// wantData compares private data with the sent bytes. On iWARP both are equal. On InfiniBand zeros
// follow, up to the limit.
func (w *world) wantData(what string, got []byte, sent string, limit int) {
	w.Helper()
	want := []byte(sent)
	if !w.IWARP {
		want = append(want, make([]byte, limit-len(sent))...)
	}
	if !bytes.Equal(got, want) {
		w.Errorf("%s: private data %q (%d bytes), want %q (%d)", what, got, len(got), want, len(want))
	}
}
