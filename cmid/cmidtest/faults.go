package cmidtest

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Message is a kind of message between hosts, for Drop.
type Message uint8

// The messages, in InfiniBand's terms. On iWARP the MPA request and reply are MsgREQ and MsgREP (MsgREJ with the reject bit), the
// end of the stream is MsgDREQ.
const (
	msgLocal        Message = iota // work that an instance leaves itself
	MsgREQ                         // connection request
	MsgMRA                         // the request has come, its answer takes longer
	MsgREP                         // reply
	MsgRTU                         // ready to use
	MsgREJ                         // reject
	MsgDREQ                        // disconnect request
	MsgDREP                        // disconnect reply
	MsgSIDRREQ                     // service lookup of a datagram identifier
	MsgSIDRREP                     // its answer
	MsgSend                        // a Send of a queue pair
	MsgAck                         // InfiniBand: the acknowledgement of a Send or a Write, good or bad, or the refusal of a Read or an atomic
	MsgWrite                       // an RDMA Write
	MsgRead                        // an RDMA Read
	MsgAtomic                      // an atomic operation
	MsgReadResponse                // the bytes that a Read asked for, or what an atomic operation has found
	MsgDatagram                    // a Send of a datagram queue pair
	numMessages
)

// faults is what goes wrong on a Fabric.
type faults struct {
	silent  map[netip.Addr]bool
	cuts    map[hostPair]*cut
	drop    [numMessages]int
	delay   time.Duration
	latency map[netip.Addr]time.Duration
	reorder bool
	runOut  unix.Errno
}

func (fs *faults) init() {
	fs.silent = make(map[netip.Addr]bool)
	fs.cuts = make(map[hostPair]*cut)
	fs.latency = make(map[netip.Addr]time.Duration)
}

// Silence has addr answer nobody from now on: what goes there and what comes from there is lost.
func (f *Fabric) Silence(addr string) { f.setSilent(addr, true) }

// Unsilence ends Silence.
func (f *Fabric) Unsilence(addr string) { f.setSilent(addr, false) }

func (f *Fabric) setSilent(addr string, on bool) {
	ip := netip.MustParseAddr(addr)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.silent[ip] = on
}

// Drop loses the next n messages of a kind.
func (f *Fabric) Drop(kind Message, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.drop[kind] += n
}

// Delay is how long every message takes from now on, and how long address and route resolution take. It starts as 0: the next turn.
func (f *Fabric) Delay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.delay = d
}

// LatencyFor adds d to every message from and to addr.
func (f *Fabric) LatencyFor(addr string, d time.Duration) {
	ip := netip.MustParseAddr(addr)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.latency[ip] = d
}

// Reorder has events and completions overtake one another from now on, as they do on a kernel device, which tells of them on two
// file descriptors: the seed decides. Events stay in order among themselves, and so do completions.
func (f *Fabric) Reorder(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.reorder = on
}

// RunOut makes every CreateID and CreateQP fail with errno (EMFILE, ENOMEM), until it is told 0.
func (f *Fabric) RunOut(errno unix.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.runOut = errno
}

// Disconnect breaks the connection of an identifier, seen from both ends: Disconnected, with ECONNRESET on iWARP.
func (f *Fabric) Disconnect(h cmid.Handle) {
	f.onIdent(h, (*ident).breakConnection)
}

// FailNext has the next work request of an identifier's queue pair with that opcode fail: a Send, a
// Write, a Read or an atomic operation that is posted, or with verbs.Recv the receive of the next
// message. It completes with st, and the queue pair is in its error state: what is behind it is
// flushed. On iWARP the connection ends with it.
func (f *Fabric) FailNext(h cmid.Handle, op verbs.Opcode, st verbs.Status) {
	f.onQP(h, func(q *qp) { q.doom, q.doomed, q.doomStatus = op, true, st })
}

// FailQP breaks the queue pair of an identifier, as IBV_EVENT_QP_FATAL tells: what is outstanding
// is flushed, and QPFailed is told. On iWARP the connection ends with it.
func (f *Fabric) FailQP(h cmid.Handle) {
	f.onQP(h, func(q *qp) {
		q.fail()
		q.in.event(q.id, cmid.DriverEvent{Kind: states.KindQPFailed})
		if q.in.f.iwarp {
			q.terminate("the queue pair has failed")
		}
	})
}

// onQP calls fn with an identifier's queue pair, on its loop.
func (f *Fabric) onQP(h cmid.Handle, fn func(q *qp)) {
	f.onIdent(h, func(id *ident) {
		if id.qp != nil && !id.qp.over {
			fn(id.qp)
		}
	})
}

// onIdent calls fn with an identifier, on its loop.
func (f *Fabric) onIdent(h cmid.Handle, fn func(id *ident)) {
	f.mu.Lock()
	var all []*instance
	for _, host := range f.order {
		all = append(all, host.instances...)
	}
	f.mu.Unlock()
	for _, in := range all {
		in.later(func() {
			if id := in.ids[h]; id != nil {
				fn(id)
			}
		})
	}
}

// exhausted is the errno of RunOut.
func (f *Fabric) exhausted() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults.runOut != 0 {
		return f.faults.runOut
	}
	return nil
}

// coin is a fair decision, false while nothing is reordered.
func (f *Fabric) coin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults.reorder && f.rng.IntN(2) == 0
}

// fate is what becomes of a message on its way.
type fate uint8

const (
	fateArrives fate = iota
	fateLost
	fateWaits // for a link to be healed
)

// fateOf decides what becomes of p, and how long it takes.
func (f *Fabric) fateOf(p *packet) fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, b := p.src.WithZone(""), p.dst.WithZone("")
	if f.faults.drop[p.kind] > 0 {
		f.faults.drop[p.kind]--
		return fateLost
	}
	if f.faults.silent[a] || f.faults.silent[b] {
		return fateLost
	}
	p.delay = f.latency(a, b)
	switch c := f.cutFor(p); {
	case c == nil:
		return fateArrives
	case f.repeated(p.kind):
		c.held = append(c.held, *p)
		return fateWaits
	}
	return fateLost
}

// latency is called with f.mu held.
func (f *Fabric) latency(a, b netip.Addr) time.Duration {
	d := f.faults.delay
	if len(f.faults.latency) > 0 {
		d += f.faults.latency[a] + f.faults.latency[b]
	}
	return d
}
