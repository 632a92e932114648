package cmidtest

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// connectScenarios are rdma_connect(3), rdma_accept(3), rdma_reject(3) and rdma_establish(3).
var connectScenarios = scenarios{
	"private data": func(w *world) {
		c, ev := w.requested(0, []byte("question"), nil)
		lim := c.active.Limits()
		w.wantData("connect", ev.PrivateData, "question", lim.ConnectData)
		w.queues(c.passive, 0)
		w.must(c.passive.Accept([]byte("answer"), nil))
		w.wantData("accept", next[*cmid.Established](w.a, c.active).PrivateData, "answer", lim.AcceptData)
		if ev := next[*cmid.Established](w.b, c.passive); len(ev.PrivateData) != 0 {
			w.Errorf("the passive side was told %q: there is nothing to tell", ev.PrivateData)
		}
	},
	"private data at the limit": func(w *world) {
		lim := w.limits()
		question := bytes.Repeat([]byte("q"), lim.ConnectData)
		answer := bytes.Repeat([]byte("a"), lim.AcceptData)
		c, ev := w.requested(0, question, nil)
		if !bytes.Equal(ev.PrivateData, question) {
			w.Errorf("%d bytes arrived of %d", len(ev.PrivateData), len(question))
		}
		w.queues(c.passive, 0)
		w.must(c.passive.Accept(answer, nil))
		if got := next[*cmid.Established](w.a, c.active).PrivateData; !bytes.Equal(got, answer) {
			w.Errorf("%d bytes arrived of %d", len(got), len(answer))
		}
	},
	"connect over the limit": func(w *world) {
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		w.queues(id, 0)
		w.wantErr("connect", id.Connect(make([]byte, id.Limits().ConnectData+1), nil), unix.EINVAL)
		w.wantState("it may be tried again", id, states.RouteResolved)
		w.must(id.Connect(nil, nil))
		w.b.request()
	},
	"accept over the limit rejects": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.queues(c.passive, 0)
		w.wantErr("accept", c.passive.Accept(make([]byte, c.passive.Limits().AcceptData+1), nil), unix.EINVAL)
		w.wantRejected(c.active, cmid.RejectConsumerDefined)
		w.wantState("and is over", c.passive, states.Failed)
	},
	"reject": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.must(c.passive.Reject([]byte("no")))
		w.wantData("reject", w.wantRejected(c.active, cmid.RejectConsumerDefined), "no", c.passive.Limits().RejectData)
		w.wantErr("accept after reject", c.passive.Accept(nil, nil), unix.EINVAL)
		w.quiet("a reject has no answer")
	},
	"reject over the limit": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.wantErr("reject", c.passive.Reject(make([]byte, c.passive.Limits().RejectData+1)), unix.EINVAL)
	},
	"parameters change sides": func(w *world) {
		_, ev := w.requested(0, nil, &cmid.ConnParam{ResponderResources: 3, InitiatorDepth: 5, RNRRetryCount: 7})
		if ev.Param.ResponderResources != 5 || ev.Param.InitiatorDepth != 3 {
			w.Errorf("%+v: the reads one side sends are those the other answers", ev.Param)
		}
	},
	"needs a queue pair": func(w *world) {
		if !w.iwarp {
			w.Skip("on InfiniBand the owner may have one of its own")
		}
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		w.wantErr("connect", id.Connect(nil, nil), unix.EINVAL)
		w.wantState("it may be tried again", id, states.RouteResolved)
		w.queues(id, 0)
		w.must(id.Connect(nil, nil))
		child, _ := w.b.request()
		w.wantErr("accept", child.Accept(nil, nil), unix.EINVAL)
		w.wantRejected(id, cmid.RejectConsumerDefined)
	},
	"one queue pair": func(w *world) {
		w.listener(tcp, any4(0))
		id := w.a.create(tcp)
		if _, err := id.CreateQP(qpAttr(nil)); err == nil {
			w.Error("create_qp without a device")
		}
		id = w.resolved(tcp, w.target())
		q := w.queues(id, 0)
		_, err := id.CreateQP(qpAttr(q))
		w.wantErr("a second create_qp", err, unix.EINVAL)
	},
	"response and establish": func(w *world) {
		if w.iwarp {
			w.Skip("iWARP has no third step")
		}
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		ours, theirs := freshQPN(), freshQPN()
		w.must(id.Connect(nil, &cmid.ConnParam{QPNum: ours}))
		child, ev := w.b.request()
		if ev.Param.QPNum != ours {
			w.Errorf("queue pair %d, want %d", ev.Param.QPNum, ours)
		}
		w.must(child.Accept([]byte("x"), &cmid.ConnParam{QPNum: theirs}))
		resp := next[*cmid.ConnectResponse](w.a, id)
		w.wantData("accept", resp.PrivateData, "x", child.Limits().AcceptData)
		if resp.Param.QPNum != theirs {
			w.Errorf("queue pair %d, want %d", resp.Param.QPNum, theirs)
		}
		w.quiet("the passive side waits for the owner")
		w.must(id.Establish())
		next[*cmid.Established](w.b, child)
		w.wantErr("established already", child.Notify(false), unix.EISCONN)
		w.quiet("establish has no event")
	},
	"peer gone before accept": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.must(c.active.Destroy())
		w.quiet("nobody is told")
		w.queues(c.passive, 0)
		if w.differs(DestroyAwaitsAnswer) {
			w.must(c.passive.Accept(nil, nil))
			next[*cmid.Established](w.b, c.passive)
			next[*cmid.Disconnected](w.b, c.passive)
			return
		}
		want := unix.EINVAL
		if w.iwarp {
			want = unix.ECONNRESET
		}
		err := c.passive.Accept(nil, nil)
		if err == nil { // a device that does not wait finds out later
			err = next[cmid.Failure](w.b, c.passive)
		}
		w.wantErr("accept", err, want)
		w.wantState("and is over", c.passive, states.Failed)
	},
	"child destroyed": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.must(c.passive.Destroy())
		w.wantRejected(c.active, cmid.RejectConsumerDefined)
	},
	"vendor option": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.must(failure(c.passive.Do(&cmid.Reject{VendorECE: true})))
		w.wantRejected(c.active, cmid.RejectVendorOption)
	},
	"nobody answers": func(w *world) {
		if w.rig.Clock == nil {
			w.Skip("takes as long as the device's clocks")
		}
		c, _ := w.requested(0, nil, nil)
		if !w.iwarp { // the peer's kernel asks for more time
			w.within(175*time.Second, 0, func() bool { return len(w.a.heard) > 0 })
			w.quiet("a request may be answered minutes later")
			w.must(c.passive.Accept(nil, nil))
			next[*cmid.Established](w.a, c.active)
			next[*cmid.Established](w.b, c.passive)
			return
		}
		w.wantErr("connect", next[*cmid.Unreachable](w.a, c.active), unix.ETIMEDOUT)
		w.wantState("and is over", c.active, states.Failed)
	},
}

// wantData holds private data against what was sent: exact on iWARP, with zeros up to the limit on InfiniBand.
func (w *world) wantData(what string, got []byte, sent string, limit int) {
	w.Helper()
	want := []byte(sent)
	if !w.iwarp {
		want = append(want, make([]byte, limit-len(sent))...)
	}
	if !bytes.Equal(got, want) {
		w.Errorf("%s: private data %q (%d bytes), want %q (%d)", what, got, len(got), want, len(want))
	}
}

// wantRejected waits for a Rejected and gives its private data. On iWARP the reason does not travel.
func (w *world) wantRejected(id *cmid.ID, reason cmid.RejectReason) (data []byte) {
	w.Helper()
	if w.iwarp {
		reason = cmid.RejectReset
	}
	ev := next[*cmid.Rejected](w.a, id)
	if ev.Reason != reason {
		w.Errorf("rejected for reason %d, want %d", ev.Reason, reason)
	}
	w.wantState("rejected", id, states.Failed)
	return ev.PrivateData
}
