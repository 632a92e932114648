package uverbs

// Run ends a turn: what was posted is announced, owners are notified, and a queue whose owner has
// heard everything is armed.
func (d *device) Run(int) bool {
	d.deferred = false
	d.ring()
	low := d.low
	d.low = nil
	for _, s := range low {
		s.notifyOwner()
	}
	due := d.due
	d.due = d.spareDue[:0]
	for i, q := range due {
		due[i] = nil
		q.settle()
	}
	d.spareDue = due
	return false
}

// ring announces what was posted. A device that is asked may complete it at once.
func (d *device) ring() {
	dirty := d.dirty
	d.dirty = d.spare[:0]
	for i, q := range dirty {
		dirty[i] = nil
		q.announce()
	}
	d.spare = dirty
}

// settle notifies the owner, or asks the kernel for a report. A completion may come between
// looking and asking, so it looks again afterwards. Nothing says whether that completion was
// solicited, so the owner is notified of it.
func (q *completionQueue) settle() {
	q.due = false
	if q.gone || q.notified {
		return
	}
	if q.empty() {
		q.loud = false
	}
	if !q.notifyOwner() && q.users > 0 && q.arm() {
		q.loud = !q.empty()
		q.notifyOwner()
	}
}

// notifyOwner calls notify, if there is something that the owner wants to hear of.
func (q *completionQueue) notifyOwner() bool {
	if q.notified || q.gone || q.dev.closed || q.empty() || q.quiet && !q.loud {
		return false
	}
	q.notified, q.loud = true, false
	q.notify()
	return true
}

// arm asks the kernel to report the next completion, and reports whether it had to be asked.
func (q *completionQueue) arm() (asked bool) {
	d := q.dev
	if d.lost != nil || d.closed {
		return false
	}
	for _, p := range q.parts {
		if p.armed || p.quietly && q.quiet {
			continue
		}
		asked = true
		if s, ok := p.ring.(*siwCompletions); ok {
			s.arm.Store(siwNotifyAll)
			p.armed = true
			continue
		}
		only := uint32(0)
		if q.quiet {
			only = 1
		}
		if err := execute(d.k, cmdReqNotifyCQ, reqNotifyCQ{CQHandle: p.handle, SolicitedOnly: only}); err != nil {
			d.fail(err)
			return
		}
		p.armed, p.quietly = !q.quiet, q.quiet
	}
	return asked
}

// heard takes the kernel's report of a completion of the kind it was asked for. If that is a
// solicited one, the kernel is asked again at once: whatever came before that is polled now, so no
// solicited completion is missed, and no other is reported.
func (q *completionQueue) heard() {
	q.loud = true
	if q.quiet {
		q.arm()
	}
	if !q.notifyOwner() {
		q.later()
	}
}

// notifyOwner calls OnLimit.
func (s *sharedQueue) notifyOwner() {
	if s.low = false; !s.gone {
		s.attr.OnLimit()
	}
}
