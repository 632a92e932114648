package actor

import "github.com/rdmactor/rdmactor/cmid"

// unanswered counts the requests of a loop that nobody has answered, by the listener that was
// asked. An owner that does not answer leaves them for Timeouts.Request, and must not use up what
// other listeners have:
//
//   - Floor: a listener that has none may have one. A part of the limit, one in unansweredKept, is
//     for such only.
//   - Share: one that has some may have more while these are no more than what is left for all
//     others, without that part. So one whose owner does not answer has half of the rest, two a
//     third each.
//   - Bound: Limits.PendingRequests.
//   - Answer: what may not be had is rejected.
//
// A connection that lives on another loop than its listener counts where it lives. Loop goroutine.
type unanswered struct {
	all int
	of  map[cmid.Handle]int
}

const unansweredKept = 16

// may reports whether listener may have one more, of limit.
func (u *unanswered) may(listener cmid.Handle, limit int) bool {
	has, left := u.of[listener], limit-u.all
	if has > 0 {
		left -= limit / unansweredKept
	}
	return left > 0 && has <= left
}

// add counts one that has come (1) or was answered (-1).
func (u *unanswered) add(listener cmid.Handle, n int) {
	if u.of == nil {
		u.of = make(map[cmid.Handle]int)
	}
	u.all += n
	if u.of[listener] += n; u.of[listener] == 0 {
		delete(u.of, listener)
	}
}
