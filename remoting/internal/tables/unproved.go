package tables

// Unproved are the peers whose last dials have failed because one side does not believe who the
// other is. Without a bound a node would dial such a peer with each message, and log it each time:
// a link does not live as long as that. They belong to the roster's mutex.
type Unproved map[uint64]struct{}

// Note remembers such a peer. When there are more than may be, it begins anew.
func (u *Unproved) Note(id uint64, most int) (first bool) {
	if _, ok := (*u)[id]; ok {
		return false
	}
	if *u == nil || len(*u) >= most {
		*u = make(Unproved)
	}
	(*u)[id] = struct{}{}
	return true
}

// Forget forgets that a peer was one.
func (u *Unproved) Forget(id uint64) { delete(*u, id) }
