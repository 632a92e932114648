package iwarp

// connList is connections, oldest first: those in set-up, those that have outlived their
// identifiers, or those that wait for one shared queue's receive. Each is in one list at most.
type connList struct {
	oldest, newest *conn
	n              int
}

// has reports whether c is in the list, provided that it is in no other list.
func (l *connList) has(c *conn) bool { return c.older != nil || c.newer != nil || l.oldest == c }

// push adds c, and closes the oldest when there are more than limit.
func (l *connList) push(c *conn, limit int) {
	l.add(c)
	if l.n > limit {
		l.oldest.closeForRoom()
	}
}

// add adds c, which is in no list.
func (l *connList) add(c *conn) {
	c.older = l.newest
	if l.newest != nil {
		l.newest.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
	l.n++
}

// remove removes c, if it is in the list.
func (l *connList) remove(c *conn) bool {
	if !l.has(c) {
		return false
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		l.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		l.newest = c.older
	}
	c.older, c.newer = nil, nil
	l.n--
	return true
}
