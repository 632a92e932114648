package eventloop

// A stray is a descriptor that was closed while it was watched, but has a duplicate that is still
// open (dup, a forked process, SCM_RIGHTS). It stays in epoll, which watches open files and not
// their numbers. Only closing the duplicate takes it out, because its old number is closed or
// belongs to another file. While a stray is ready no wait sleeps, so the loop logs the cause.

// lookEvery is the number of waits with reports between two searches for strays. A loop that a
// stray keeps busy gets there within milliseconds.
const lookEvery = 4096

// strays has the tags of the strays that were seen.
type strays struct {
	looked uint64          // waits with reports
	logged map[uint64]bool // by tag; false: seen once
}

// mustLook counts a wait with reports, and reports whether to search for strays now.
func (s *strays) mustLook() bool {
	s.looked++
	return s.looked%lookEvery == 0
}

// seenTwice notes a stray, and reports whether it is seen for the second time.
func (s *strays) seenTwice(tag uint64) bool {
	logged, seen := s.logged[tag]
	if logged {
		return false
	}
	if s.logged == nil {
		s.logged = make(map[uint64]bool)
	}
	s.logged[tag] = seen
	return seen
}

// strayFinder is a Poller that can check its watches.
type strayFinder interface {
	// isWatched reports whether fd is still the file that was added as tag.
	isWatched(fd int, ev Events, tag uint64) bool
	// findFD returns the fd with which tag was added; -1: unknown.
	findFD(tag uint64) int
}

// logStrays examines the reports of a wait before any handler is called. A report that belongs to
// no registration, or to one whose descriptor is closed, is a stray's. It is logged once, when it
// is seen for the second time, because at the first time its descriptor may just have been closed.
func (l *Loop) logStrays(reports []Ready) {
	p, ok := l.poller.(strayFinder)
	if !ok {
		return
	}
	for _, report := range reports {
		w := l.fds.find(report.Tag)
		if w != nil && p.isWatched(w.fd, w.interest, w.tag) {
			continue
		}
		if !l.strays.seenTwice(report.Tag) {
			continue
		}
		holder := "none: Remove came after close"
		if w != nil {
			h, _ := w.identifyHandler()
			holder = h.String()
		}
		l.log.Error("eventloop: the loop does not sleep for a file descriptor that was closed before Remove while a duplicate of it lives",
			"loop", l.cfg.Name, "fd", p.findFD(report.Tag), "for", report.Events.String(), "handler", holder,
			"remedy", "Remove before close; this one ends with its last duplicate, or with the loop")
	}
}
