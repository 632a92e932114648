package workload

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

// recordAnswer records the server's answer: a success if how is empty, or that error.
func (w *calls) recordAnswer(x *call, how string) {
	now := w.World.Now()
	switch how {
	case codeName(rpc.CodeTooLarge), codeName(rpc.CodeOverloaded):
		x.Executed(now)
	default:
		x.Refused(now, how)
		if x.items != nil && x.op.does != doBehind {
			x.items.Ended(now, how)
		}
	}
}

// codeName names a code.
func codeName(c rpc.Code) string { return fmt.Sprintf("code %d", c) }

// isExplained reports whether a fault, or an end in the middle, may have hit a call.
func (w *calls) isExplained(x *call) bool {
	return w.Disturbed(x.machine, x.server.n) || x.client.ends > x.ends || x.client.broken || x.server.ends > 0
}

// describeUnexplained describes the contradiction in a failure that no handler has caused; empty:
// none.
func (w *calls) describeUnexplained(x *call, e *rpc.Error) string {
	now, o := w.World.Now(), x.op
	switch e.Code {
	case rpc.CodeDeadline:
		// for a stream the client's time-out limits the wait for a connection
		waited := o.streams() && x.client.cfg.Timeout > 0 && e.Fate == rpc.FateNotSent
		if d := x.Deadline(); !waited && (d == 0 || now < d-time.Millisecond) {
			return fmt.Sprintf("its deadline is %v", d)
		}
	case rpc.CodeCanceled:
		if o.cancel == 0 && o.take < 0 && !x.left {
			return "nobody has cancelled it"
		}
	case rpc.CodeUnknownMethod:
		if o.via != viaNobody {
			return "it has a handler"
		}
	case rpc.CodeTooLarge, rpc.CodeOverloaded:
		if o.innocent && !w.isExplained(x) {
			return "it is small, and the only one"
		}
	case rpc.CodeUnavailable, rpc.CodeClosed, rpc.CodeDraining:
		if !w.isExplained(x) {
			return "nothing has happened to its connection"
		}
	default:
		return "nothing explains that"
	}
	return ""
}

// addDoubt records an outcome that leaves open whether the call was executed. A server that drains
// answers the calls that it has started, and refuses the others.
func (w *calls) addDoubt(x *call, e *rpc.Error) {
	s := x.server
	switch e.Code {
	case rpc.CodeUnavailable, rpc.CodeClosed, rpc.CodeDraining:
	default:
		return
	}
	why := fmt.Sprintf("call %d (%s): %v: its server has cut nothing off", x.Number(), x.op, e)
	s.doubts = append(s.doubts, func() {
		if (s.cutAt == 0 || x.at > s.cutAt+callTransit) && !w.Disturbed(x.machine, s.n) && x.client.ends == x.ends && !x.client.broken {
			w.failWorld("%s", why)
		}
	})
	s.judgeDoubts()
}

// judgeDoubts judges the doubts, unless a Drain is under way, which cuts off the remaining calls at
// its deadline.
func (s *service) judgeDoubts() {
	if s.draining {
		return
	}
	for _, judge := range s.doubts {
		judge()
	}
	s.doubts = nil
}
