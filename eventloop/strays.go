package eventloop

// A descriptor that was closed while it was watched, of which a duplicate lives (dup, a forked
// process, SCM_RIGHTS), stays in epoll, which watches open files and not their numbers. Nothing
// but that duplicate's end takes it out: its number is not open any more, or is another file's.
// While it is ready no wait sleeps, so the loop has to log what keeps it busy.

// lookEvery is how many waits that found something lie between two looks for strays. A loop that a
// stray keeps busy gets there within milliseconds.
const lookEvery = 4096

// strayFinder is a Poller that knows what became of what it watches.
type strayFinder interface {
	// watches says whether fd still is what was added as tag.
	watches(fd int, ev Events, tag uint64) bool
	// number is what fd was when tag was added; -1 when that cannot be found out.
	number(tag uint64) int
}

// findStrays looks at what a wait has just reported, before any handler is called: what is watched
// then and belongs to no registration, or to one whose descriptor is closed, is a stray. It is
// logged, once, when it is seen again: its descriptor may just have been closed.
func (l *Loop) findStrays(reports []Ready) {
	p, ok := l.poller.(strayFinder)
	if !ok {
		return
	}
	for _, report := range reports {
		w := l.fds.find(report.Tag)
		if w != nil && p.watches(w.fd, w.interest, w.tag) {
			continue
		}
		said, seen := l.strays[report.Tag]
		if said {
			continue
		}
		if l.strays == nil {
			l.strays = make(map[uint64]bool)
		}
		if l.strays[report.Tag] = seen; !seen {
			continue
		}
		holder := "none: Remove came after close"
		if w != nil {
			h, _ := w.whose()
			holder = h.String()
		}
		l.log.Error("eventloop: the loop does not sleep for a file descriptor that was closed before Remove while a duplicate of it lives",
			"loop", l.cfg.Name, "fd", p.number(report.Tag), "for", report.Events.String(), "handler", holder,
			"remedy", "Remove before close; this one ends with its last duplicate, or with the loop")
	}
}
