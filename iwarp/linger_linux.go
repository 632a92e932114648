package iwarp

// lingerList is the connections that have outlived their identifiers, oldest first.
type lingerList struct {
	oldest, newest *conn
	n              int
}

// push adds c, and closes the oldest when there are more than limit.
func (l *lingerList) push(c *conn, limit int) {
	c.older = l.newest
	if l.newest != nil {
		l.newest.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
	if l.n++; l.n > limit {
		l.oldest.close()
	}
}

// remove takes c out, if it is in.
func (l *lingerList) remove(c *conn) {
	if c.older == nil && c.newer == nil && l.oldest != c {
		return
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
}
