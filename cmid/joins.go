package cmid

import "slices"

// joins is the JoinMulticasts whose events are still to come, oldest first. Each event names its
// group.
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
