package cmidtest

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Message is a kind of message between hosts, for Drop.
type Message uint8

// The messages, in InfiniBand's terms. On iWARP the MPA request and reply are MsgREQ and MsgREP
// (MsgREJ with the reject bit), the end of the stream is MsgDREQ.
const (
	msgLocal   Message = iota // work that an instance leaves itself
	MsgREQ                    // connection request
	MsgMRA                    // the request has come, its answer takes longer
	MsgREP                    // reply
	MsgRTU                    // ready to use
	MsgREJ                    // reject
	MsgDREQ                   // disconnect request
	MsgDREP                   // disconnect reply
	MsgSIDRREQ                // service lookup of a datagram identifier
	MsgSIDRREP                // its answer
	MsgSend                   // a Send of a queue pair
	// InfiniBand: the acknowledgement of a Send or a Write, good or bad, or the refusal of a Read
	// or an atomic
	MsgAck
	MsgWrite  // an RDMA Write
	MsgRead   // an RDMA Read
	MsgAtomic // an atomic operation
	// the bytes that a Read asked for, or what an atomic operation has found
	MsgReadResponse
	MsgDatagram // a Send of a datagram queue pair
	numMessages
)

var messageNames = [numMessages]string{
	"local work", "MsgREQ", "MsgMRA", "MsgREP", "MsgRTU", "MsgREJ", "MsgDREQ", "MsgDREP", "MsgSIDRREQ", "MsgSIDRREP",
	"MsgSend", "MsgAck", "MsgWrite", "MsgRead", "MsgAtomic", "MsgReadResponse", "MsgDatagram",
}

// String is the constant's name.
func (m Message) String() string {
	if m < numMessages {
		return messageNames[m]
	}
	return fmt.Sprintf("Message(%d)", uint8(m))
}

// MarshalText is String's text.
func (m Message) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// faults is what goes wrong on a Fabric.
type faults struct {
	asked   []*Fault // all that there were
	silent  map[netip.Addr]*Fault
	cuts    map[hostPair]*cut
	drop    [numMessages][]*Fault // the oldest first
	delay   time.Duration
	latency map[netip.Addr]latency
	reorder bool
	runOut  unix.Errno
	lacks   *Fault // RunOut's
}

// latency is what an address adds.
type latency struct {
	d     time.Duration
	fault *Fault
}

func (fs *faults) init() {
	fs.silent = make(map[netip.Addr]*Fault)
	fs.cuts = make(map[hostPair]*cut)
	fs.latency = make(map[netip.Addr]latency)
}

// Silence has addr answer nobody from now on: what goes there and what comes from there is lost.
func (f *Fabric) Silence(addr string) *Fault {
	ip := netip.MustParseAddr(addr)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults.silent[ip] == nil {
		f.faults.silent[ip] = f.ask(1, "Silence(%q)", addr)
	}
	return f.faults.silent[ip]
}

// Unsilence ends Silence. It reports whether the address was silent.
func (f *Fabric) Unsilence(addr string) (was bool) {
	ip := netip.MustParseAddr(addr)
	f.mu.Lock()
	defer f.mu.Unlock()
	was = f.faults.silent[ip] != nil
	delete(f.faults.silent, ip)
	return was
}

// silenced reports whether one of two addresses is silent, which keeps something from its end.
// f.mu is held.
func (f *Fabric) silenced(a, b netip.Addr) bool {
	if len(f.faults.silent) == 0 {
		return false
	}
	x, y := f.faults.silent[a].hit(), f.faults.silent[b].hit()
	return x || y
}

// Drop loses the next n messages of a kind.
func (f *Fabric) Drop(kind Message, n int) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.ask(n, "Drop(%v, %d)", kind, n)
	f.faults.drop[kind] = append(f.faults.drop[kind], x)
	return x
}

// dropped reports whether a message of that kind is lost. f.mu is held.
func (f *Fabric) dropped(kind Message) bool {
	queue := &f.faults.drop[kind]
	for len(*queue) > 0 && (*queue)[0].left == 0 {
		*queue = (*queue)[1:]
	}
	return len(*queue) > 0 && (*queue)[0].hit()
}

// Delay is how long every message takes from now on, and how long address and route resolution
// take. It starts as 0: the next turn.
func (f *Fabric) Delay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.delay = d
}

// LatencyFor adds d to every message from and to addr.
func (f *Fabric) LatencyFor(addr string, d time.Duration) *Fault {
	ip := netip.MustParseAddr(addr)
	f.mu.Lock()
	defer f.mu.Unlock()
	if d == 0 {
		delete(f.faults.latency, ip)
		return new(Fault)
	}
	x := f.ask(1, "LatencyFor(%q, %v)", addr, d)
	f.faults.latency[ip] = latency{d, x}
	return x
}

// Reorder has events and completions overtake one another from now on, as they do on a kernel
// device, which tells of them on two file descriptors: the seed decides. Events stay in order
// among themselves, and so do completions.
func (f *Fabric) Reorder(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.reorder = on
}

// RunOut makes every CreateID and CreateQP fail with errno (EMFILE, ENOMEM), until it is told 0.
func (f *Fabric) RunOut(errno unix.Errno) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.runOut, f.faults.lacks = errno, nil
	if errno == 0 {
		return new(Fault)
	}
	f.faults.lacks = f.ask(1, "RunOut(%s)", unix.ErrnoName(errno))
	return f.faults.lacks
}

// Disconnect breaks the connection of an identifier, seen from both ends: Disconnected, with
// ECONNRESET on iWARP.
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
		f.faults.lacks.hit()
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
	if f.dropped(p.kind) || f.silenced(a, b) {
		return fateLost
	}
	p.delay = f.latency(a, b)
	c := f.cutFor(p)
	if c == nil {
		return fateArrives
	}
	c.fault.hit()
	if f.repeated(p.kind) {
		c.held = append(c.held, *p)
		return fateWaits
	}
	return fateLost
}

// latency is called with f.mu held.
func (f *Fabric) latency(a, b netip.Addr) time.Duration {
	d := f.faults.delay
	if len(f.faults.latency) > 0 {
		for _, ip := range [...]netip.Addr{a, b} {
			l := f.faults.latency[ip]
			l.fault.hit()
			d += l.d
		}
	}
	return d
}
