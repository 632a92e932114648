package actor

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// arrivals is the messages of a connection that have come and cannot be told yet, in order: those that come before Established was told,
// offers that are to be read, and what has come behind them. A connection has one from the first of these on. Loop goroutine.
//
// An offer is read when the loop's budget has memory for it, in parts, of which a few are under way at a time.
type arrivals struct {
	c       *conn
	from    netip.Addr // sourceOf the peer
	in      []pending
	first   int // the oldest; those before it were told
	next    int // the oldest that is not asked for completely
	held    int // bytes of memory for offers: being read into, read, the owner's
	wait    bool
	reads   [readsMax]oneSided
	begun   uint32 // Reads
	done    uint32
	filling int       // offers that memory was taken for, and are not here
	since   time.Time // of what is being read nothing has come
	seen    uint32    // done when the timer was set
	timer   *eventloop.Timer
	armed   bool
}

// pending is a message that has come.
type pending struct {
	m     *inbound   // with Data when it is here
	from  wire.Offer // where it is to be read; Length 0: it came at once
	asked uint32     // bytes
	came  uint32
}

const (
	// readsMax is how many Reads a connection has under way at most, and readPart how much one reads: what the peer sends besides waits
	// for no more than that.
	readsMax = 4
	readPart = 1 << 20
	// keepTold is how many messages that were told are kept in any case.
	keepTold = 64
	// readPatience is how long a peer may take for a Read that it has offered.
	readPatience = 30 * time.Second
)

// put adds what has come.
func (b *arrivals) put(m *inbound, from wire.Offer) {
	if b.first == len(b.in) || b.first >= keepTold && b.first > len(b.in)/2 { // a peer may see to it that some wait at any time
		n := copy(b.in, b.in[b.first:])
		clear(b.in[n:])
		b.in, b.first, b.next = b.in[:n], 0, max(b.next-b.first, 0)
	}
	m.since = time.Now() // not the loop's, which may be a long turn old
	b.in = append(b.in, pending{m: m, from: from})
}

// len is how many messages wait.
func (b *arrivals) len() int { return len(b.in) - b.first }

// toRead is the offer that is next to be read.
func (b *arrivals) toRead() *pending {
	for b.next < len(b.in) {
		if a := &b.in[b.next]; a.asked < a.from.Length {
			return a
		}
		b.next++
	}
	return nil
}

// advance reads on. granted: the budget has memory for the next offer.
func (b *arrivals) advance(granted bool) {
	c := b.c
	for c.flows() && b.begun-b.done < c.reads {
		a := b.toRead()
		if a == nil || b.wait {
			break
		}
		if a.m.chunk == nil {
			if !granted && !c.l.recvBudget.admits(b) {
				b.wait = true
				break
			}
			granted = false
			if !b.hold(a) {
				break
			}
		}
		n := min(readPart, a.from.Length-a.asked)
		o := &b.reads[b.begun%readsMax]
		*o = oneSided{
			op: verbs.Read, near: verbs.SGE{MR: a.m.chunk.sge.MR, Offset: a.m.chunk.sge.Offset + a.asked, Length: n},
			addr: a.from.Addr + uint64(a.asked), rkey: a.from.Key, who: b,
		}
		a.asked += n
		b.begun++
		c.session.Reading(true)
		if err := c.oneSided(o); err != nil {
			b.done++ // it was not taken: the connection is over
			break
		}
	}
	b.watch()
}

// hold takes memory for an offer. Not ok: the device has none, and is asked again.
func (b *arrivals) hold(a *pending) (ok bool) {
	chunk, err := b.c.dom.sinks.get(int(a.from.Length))
	if err != nil {
		b.c.l.log.Warn("rdma: no memory for a large message", "device", b.c.d.dev.Name(), "err", err)
		b.wait = true
		b.c.l.el.AfterFunc(retryAfter, func() {
			b.wait = false
			b.advance(false)
		})
		return false
	}
	a.m.chunk = chunk
	b.c.l.shares.large += chunk.size()
	a.m.data = chunk.bytes()[:a.from.Length:a.from.Length]
	b.held += int(chunk.sge.Length)
	if b.filling == 0 {
		b.since = b.c.l.el.Now()
	}
	b.filling++
	chunk.stock.filling++
	b.c.l.sources.fill(b.from, int(chunk.sge.Length))
	return true
}

// filled: nothing is read into a chunk any more.
func (b *arrivals) filled(chunk *chunk) {
	b.filling--
	chunk.stock.filling--
	b.c.l.sources.filled(b.from, int(chunk.sge.Length))
}

// stop is told that the connection has ended: what was still being read has kept memory from others.
func (b *arrivals) stop() {
	if b.filling > 0 {
		b.c.l.sources.wasted(b.from, b.c.l.el.Now().Sub(b.since))
	}
	b.drop()
}

// claim is claimant's.
func (b *arrivals) claim() (want, held int) {
	if a := b.toRead(); a != nil && a.m.chunk == nil && !b.c.over() {
		return sized(int(a.from.Length)), b.held
	}
	return 0, b.held
}

// fair is claimant's.
func (b *arrivals) fair(want int) bool { return b.c.l.sources.let(b.from, want) }

// grant is claimant's.
func (b *arrivals) grant() {
	b.wait = false
	b.advance(true)
}

// Ended is oneSidedOwner's. Reads end in order: the oldest offer that is not here completely has got more of its bytes.
func (b *arrivals) Ended(c *conn, _ *oneSided, err error) {
	b.done++
	c.session.Reading(b.begun != b.done)
	if c.over() {
		b.drop()
		return
	}
	if err != nil {
		if !errors.Is(err, ErrFlushed) {
			c.up.BreakOff(&wire.ProtocolError{What: fmt.Sprintf("an offer cannot be read: %v", err)})
		}
		return
	}
	i := b.first
	for b.in[i].came == b.in[i].from.Length {
		i++
	}
	a := &b.in[i]
	a.came += min(readPart, a.from.Length-a.came)
	b.since = c.l.el.Now()
	if a.came == a.from.Length {
		b.filled(a.m.chunk)
		c.session.Pull()
		if i == b.first {
			b.tell()
		}
	}
	b.advance(false)
	c.d.pump(c)
}

// Abandoned is oneSidedOwner's: nobody waits for an answer.
func (b *arrivals) Abandoned(*conn, *oneSided) {}

// tell tells the owner what is here, up to the first offer that is still to be read.
func (b *arrivals) tell() {
	for b.first < len(b.in) && b.c.flows() {
		a := &b.in[b.first]
		if a.came < a.from.Length {
			return
		}
		m := a.m
		*a = pending{}
		b.first++
		b.c.up.Deliver(m)
	}
}

// gave takes the memory of a message back that was read.
func (b *arrivals) gave(c *chunk) {
	b.held -= int(c.sge.Length)
	c.stock.put(c)
}

// drop gives back what is not told any more. What is being read into is the device's until its Reads have ended.
func (b *arrivals) drop() {
	if b.begun != b.done {
		return
	}
	if b.timer != nil {
		b.timer.Stop()
	}
	for ; b.first < len(b.in); b.first++ {
		a := &b.in[b.first]
		if a.m.chunk != nil {
			if a.came < a.from.Length {
				b.filled(a.m.chunk)
			}
			b.c.give(a.m.chunk)
		}
		b.c.l.freeInbound(a.m)
		*a = pending{}
	}
	if b.wait {
		b.c.l.recvBudget.leave(b)
	}
}

// watch sees to it that the peer answers.
func (b *arrivals) watch() {
	if b.armed || b.begun == b.done {
		return
	}
	if b.timer == nil {
		b.timer = b.c.l.el.NewTimer(b.look)
	}
	b.armed, b.seen = true, b.done
	b.timer.Reset(readPatience)
}

// look ends a connection whose peer has not answered a Read.
func (b *arrivals) look() {
	b.armed = false
	if b.begun != b.done && b.seen == b.done {
		b.c.up.BreakOff(&wire.ProtocolError{What: fmt.Sprintf("a Read of what was offered was not answered within %v", readPatience)})
		return
	}
	b.watch()
}
