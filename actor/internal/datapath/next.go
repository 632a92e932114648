package datapath

// outlook contains everything that decides which posting is next: counts, and the oldest entries of
// the queue. nextStep uses nothing else.
type outlook struct {
	depth  int    // of the send queue
	posted int    // in it
	silent int    // of those, how many are behind the last that will complete by itself
	window uint32 // messages that the peer has room for

	ops      bool   // one-sided operations wait
	opSeq    uint32 // the place of the oldest
	opCredit bool   // it takes a credit

	sends   bool   // messages wait
	sendSeq uint32 // the place of the oldest
	ready   bool   // it can go, as far as its memory is concerned
	alone   bool   // it has to complete by itself
	inline  bool   // there is another one behind it, which the device copies
}

// step is the decision.
type step uint8

const (
	stepNone  step = iota // nothing may go now
	stepOp                // the oldest operation
	stepSend              // the oldest message
	stepQuiet             // the oldest message, which need not complete alone
)

// nextStep decides which posting is next. Operations do not wait for credits, and so overtake
// messages that do: a peer that reads the memory that a message announces can always make room for
// the next.
func (o *outlook) nextStep() step {
	send := o.sends && o.ready && o.hasRoom()
	op := o.ops && o.posted < o.depth && (!o.opCredit || o.window > 0)
	switch {
	case op && (!send || int32(o.opSeq-o.sendSeq) < 0):
		return stepOp
	case send && o.isFollowed():
		return stepQuiet
	case send:
		return stepSend
	}
	return stepNone
}

// hasRoom reports whether a message may go, as far as device and peer are concerned.
func (o *outlook) hasRoom() bool { return o.posted < o.depth && o.window > 0 }

// isFollowed reports whether another message certainly goes right behind the oldest: then one
// completion is enough for both. In a long run some complete nevertheless, so that the device never
// runs out of work.
func (o *outlook) isFollowed() bool {
	return !o.alone && o.inline && !o.ops && o.window > 1 && o.posted+1 < o.depth && o.silent+1 < completionBatch(o.depth)
}

// completionBatch returns a quarter of depth: how many postings complete in one group.
func completionBatch(depth int) int { return max(1, depth/4) }
