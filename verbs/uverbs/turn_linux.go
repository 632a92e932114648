package uverbs

// Run ends a turn. It announces posted sends, notifies owners, and arms the queues whose owners
// have polled everything.
func (d *device) Run(int) bool {
	d.deferred = false
	for _, q := range d.due {
		q.foreseeArming()
	}
	d.announceAll()
	low := d.low
	d.low = nil
	for _, s := range low {
		s.callOnLimit()
	}
	due := d.due
	d.due = d.spareDue[:0]
	for i, q := range due {
		due[i] = nil
		q.notifyOrArm()
	}
	d.spareDue = due
	return false
}

// announceAll announces posted sends. The device may complete them during the announcement.
func (d *device) announceAll() {
	dirty := d.dirty
	d.dirty = d.spare[:0]
	for i, q := range dirty {
		dirty[i] = nil
		q.announceSends()
	}
	d.spare = dirty
}

// foreseeArming announces the arming by settle in the absence of completions.
func (q *completionQueue) foreseeArming() {
	if q.gone || q.notified || q.users == 0 || q.ready.Len() > 0 || q.dev.lost != nil || q.dev.closed {
		return
	}
	for _, p := range q.parts {
		if p.toArm() {
			q.dev.hw.Foresee(p.handle, p.ring, p.onlySolicited())
		}
	}
}

// toArm reports whether the kernel is to be asked for an event.
func (p *cqPart) toArm() bool { return !p.armed && (!p.quietly || !p.q.quiet) }

// onlySolicited reports whether that event is wanted of solicited completions only.
func (p *cqPart) onlySolicited() bool { return p.q.quiet && !p.q.dev.attr.NotifiesAll }

// notifyOrArm notifies the owner or arms the queue. A completion may arrive between the check for
// completions and the arming, so it checks again afterwards. It cannot know whether such a
// completion was solicited, so the owner is notified of it.
func (q *completionQueue) notifyOrArm() {
	q.due = false
	if q.gone || q.notified {
		return
	}
	empty := q.isEmpty() // may take a while with a library
	if empty {
		q.loud = false
	}
	if (empty || !q.callNotify()) && q.users > 0 && q.armParts() {
		if empty = q.isEmpty(); !empty {
			q.loud = true
			q.callNotify()
		}
	}
}

// callNotify calls notify if there is a completion for which the owner wants to be notified.
func (q *completionQueue) callNotify() bool {
	if q.notified || q.gone || q.dev.closed || q.quiet && !q.loud || q.isEmpty() {
		return false
	}
	q.notified, q.loud = true, false
	q.notifying, q.taken.Last = true, false
	defer q.assumeMore() // even if the owner panics
	q.notify()
	return true
}

// assumeMore ends the assumption of nothingBehind.
func (q *completionQueue) assumeMore() { q.notifying, q.taken.Last = false, false }

// armParts asks the kernel to report the next completion. The result is false if that was not
// necessary.
func (q *completionQueue) armParts() (asked bool) {
	d := q.dev
	if d.lost != nil || d.closed {
		return false
	}
	for _, p := range q.parts {
		if !p.toArm() {
			continue
		}
		asked = true
		only := p.onlySolicited()
		if err := d.hw.ReqNotify(p.handle, p.ring, only); err != nil {
			d.handleGone(err)
			return
		}
		p.setArmed(!only, only)
	}
	return asked
}

// handleReport handles the kernel's report of a completion of the kind for which it was armed. If
// the queue was armed for solicited completions, it is armed again immediately. Everything that
// arrived before that is polled now, so no solicited completion is missed and no other one is
// reported.
func (q *completionQueue) handleReport() {
	q.loud = true
	if q.quiet {
		q.armParts()
	}
	if !q.callNotify() {
		q.scheduleSettle()
	}
}

// callOnLimit calls OnLimit.
func (s *sharedQueue) callOnLimit() {
	if s.low = false; !s.gone {
		s.attr.OnLimit()
	}
}
