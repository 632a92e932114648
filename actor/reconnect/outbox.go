package reconnect

import "github.com/rdmactor/rdmactor/internal/ring"

import rdma "github.com/rdmactor/rdmactor/actor"

// message is an accepted message without a final fate.
type message struct {
	send       *rdma.Send // nil: the device has had it, and it will not be repeated
	tag        uint64
	tagged     bool
	idempotent bool
	repeated   bool // its fate was Unknown before: it may have been delivered
}

// takeMessage takes the message out of s, which goes back to the pool. Not ok: it was not made by
// NewSend, or was sent before.
func (s *Send) takeMessage() (m message, ok bool) {
	ok = s.reserveMessage()
	m = message{send: s.Message, tag: s.Tag, tagged: !s.Quiet, idempotent: s.Idempotent}
	*s = Send{}
	sends.Put(s)
	return m, ok
}

// reserveMessage takes the Message, once.
func (s *Send) reserveMessage() (ok bool) {
	s.taken = s.taken || s.Message != nil && s.Message.Take()
	return s.taken
}

// outbox has the accepted messages without a final fate, in order: first those that the device of
// the present generation has, then those that wait.
type outbox struct {
	queue  ring.Ring[message]
	posted int // how many of queue were handed over
	tagged int // how many of those are tagged
	full   bool

	line    *rdma.Line // nil: there is no connection
	maxSend int
	// messages of this connection that are known to be delivered, and were removed from queue
	settled uint64
	counts  Counts // of the generation
	total   Counts
}

func (o *outbox) len() int { return o.queue.Len() }

// waitingCount returns how many messages were not handed to the device.
func (o *outbox) waitingCount() int { return o.queue.Len() - o.posted }

// beginGeneration starts to use the connection of a new generation. It returns the messages that
// are larger than its peer accepts.
func (o *outbox) beginGeneration(line *rdma.Line, maxSend int) (tooLarge []message) {
	o.line, o.maxSend, o.settled = line, maxSend, 0
	for range o.queue.Len() {
		m := o.queue.Pop()
		if m.send.Len() > maxSend {
			tooLarge = append(tooLarge, m)
			continue
		}
		o.queue.Push(m)
	}
	return tooLarge
}

// hasDelivered reports whether the peer has consumed a message over the present connection.
func (o *outbox) hasDelivered() bool { return o.line != nil && o.line.Delivered() > 0 }

// postWaiting hands the connection as many messages as it has room for.
func (o *outbox) postWaiting() {
	for o.waitingCount() > 0 {
		if !o.postMessage(o.queue.At(o.posted)) {
			return
		}
		o.posted++
	}
}

// postMessage hands the device a message, if the device has room for it.
func (o *outbox) postMessage(m *message) (posted bool) {
	var again *rdma.Send
	if m.idempotent {
		again = m.send.Copy()
	}
	if !o.line.Post(m.send) {
		if again != nil {
			again.Release()
		}
		return false
	}
	m.send = again
	if m.tagged {
		o.tagged++
	}
	return true
}

// collectFates ends the messages whose fate on the present connection is known by now.
func (o *outbox) collectFates() (fates []Fate) {
	if !o.line.Acknowledged() { // their fate will not become known
		return o.settleOldest(o.posted, Unknown, fates)
	}
	n := int(o.line.Delivered() - o.settled)
	o.settled += uint64(n)
	return o.settleOldest(n, Delivered, fates)
}

// settleOldest records the last fate of the first n posted messages.
func (o *outbox) settleOldest(n int, outcome Outcome, fates []Fate) []Fate {
	for range n {
		m := o.queue.Pop()
		o.posted--
		if m.tagged {
			o.tagged--
			fates = append(fates, Fate{Tag: m.tag, Outcome: outcome})
		}
		o.counts.add(outcome)
		o.total.add(outcome)
	}
	return fates
}

// endGeneration ends the generation. drop: no message waits for another generation.
func (o *outbox) endGeneration(drop bool) (fates []Fate, counts Counts) {
	if o.line != nil {
		fates = o.collectFates()
	}
	posted := o.posted
	for i := range o.queue.Len() {
		m := o.queue.Pop()
		f := Fate{Tag: m.tag, Outcome: Unsent}
		if i < posted {
			f.Outcome = Unknown
			m.repeated = true
		}
		f.Again = !drop && m.send != nil
		if f.Again {
			o.queue.Push(m)
		} else {
			if m.repeated {
				f.Outcome = Unknown
			}
			o.counts.add(f.Outcome)
			o.total.add(f.Outcome)
		}
		if m.tagged {
			fates = append(fates, f)
		}
	}
	counts = o.counts
	o.line, o.posted, o.tagged, o.counts = nil, 0, 0, Counts{}
	return fates, counts
}

// wouldRepeat reports whether there would be something to send in another generation, if this one
// ended now.
func (o *outbox) wouldRepeat(drop bool) bool {
	gone := 0
	if o.line != nil {
		gone = int(o.line.Delivered() - o.settled)
	}
	for i := gone; i < o.queue.Len() && !drop; i++ {
		if o.queue.At(i).send != nil {
			return true
		}
	}
	return false
}
