package iwarp

// connList is connections, oldest first: those in set-up, or those that have outlived their identifiers. Each is in one list at most.
type connList struct {
	oldest, newest *conn
	n              int
}

// push adds c, and closes the oldest when there are more than limit.
func (l *connList) push(c *conn, limit int) {
	c.older = l.newest
	if l.newest != nil {
		l.newest.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
	if l.n++; l.n > limit {
		l.oldest.evict()
	}
}

// remove takes c out, if it is in.
func (l *connList) remove(c *conn) bool {
	if c.older == nil && c.newer == nil && l.oldest != c {
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
