package actor

import "github.com/rdmactor/rdmactor/cmid"

// unanswered counts a loop's requests that nobody has answered, by listener. The requests of an
// owner that does not answer stay until Timeouts.Request, and must not use up the room of other
// listeners:
//
//   - Floor: a listener that has none may have one. Of the limit, one part in unansweredKept is
//     reserved for that.
//   - Share: a listener that has some may have more while these are no more than what is left for
//     all others, without the reserved part. So one whose owner does not answer gets half of the
//     rest, and two get a third each.
//   - Bound: Limits.PendingRequests.
//   - Excess: further requests are rejected.
//
// A request counts on the loop where its connection will live, even if its listener is on another.
// Loop goroutine.
type unanswered struct {
	all int
	of  map[cmid.Handle]int
}

const unansweredKept = 16

// may reports whether listener may have one more request, with limit for all of them.
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
