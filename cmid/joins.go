package cmid

import (
	"slices"

	"golang.org/x/sys/unix"
)

// joins is the JoinMulticasts whose events are still to come, oldest first. Each event names its group.
type joins []*JoinMulticast

// take removes the oldest join of a group, nil when there is none.
func (js *joins) take(group Addr) *JoinMulticast {
	for _, j := range *js {
		if j.Addr.Equal(group) {
			js.remove(j)
			return j
		}
	}
	return nil
}

func (js *joins) remove(j *JoinMulticast) {
	*js = slices.DeleteFunc(*js, func(other *JoinMulticast) bool { return other == j })
}

// unjoined tells that no event will answer a join that was taken.
func (id *ID) unjoined(j *JoinMulticast, why string, errno unix.Errno) {
	f := id.failure(j, errno)
	f.Err = &refusal{why, errno}
	id.ch.sink(id, &CommandFailed{f}, j)
}
