package cmidtest

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Fault is a fault that a test has requested with Silence, Drop, LatencyFor, RunOut, RunShort or
// Cut. Any goroutine may call its method.
type Fault struct {
	f        *Fabric
	what     string
	left     int // how many times it must still happen
	asked    int
	optional bool

	delay       time.Duration // LatencyFor's
	errno       unix.Errno    // RunOut's
	probability float64       // RunShort's
}

// Optional allows the fault not to happen. Missed then does not list it.
func (x *Fault) Optional() {
	if x.f != nil {
		x.f.mu.Lock()
		defer x.f.mu.Unlock()
	}
	x.optional = true
}

// hitLocked records that the fault has happened. x may be nil.
func (x *Fault) hitLocked() (was bool) {
	if x != nil && x.left > 0 {
		x.left--
	}
	return x != nil
}

// Missed lists the faults that have not happened as often as they were requested. Examples are a
// Drop of a message that was never sent, a Silence of an address to which nothing was sent, and a
// RunOut without a later allocation. A test with such a fault has not tested the behaviour in its
// name. Any goroutine may call Missed.
func (f *Fabric) Missed() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.faults.asked {
		switch {
		case x.left == 0 || x.optional:
		case x.left == x.asked:
			all = append(all, x.what+" has never happened")
		default:
			all = append(all, fmt.Sprintf("%s has happened %d times only", x.what, x.asked-x.left))
		}
	}
	return all
}

// faults are the faults of a Fabric.
type faults struct {
	asked    []*Fault // all, for Missed
	silent   map[netip.Addr]*Fault
	cuts     map[hostPair]*cut
	drop     [numMessages][]*Fault // the oldest first
	delay    time.Duration
	slow     map[netip.Addr]*Fault
	reorder  bool
	overlook *Fault // nil: nothing is overlooked
	runOut   *Fault // nil: there is room
}

// hostPair is two hosts. A cut has two entries in the map, one for each order.
type hostPair [2]*Host

// cut is a link that is cut.
type cut struct {
	fault   *Fault
	waiting []packet // to be repeated
}

// askLocked records a fault that should happen n times.
func (f *Fabric) askLocked(n int, format string, args ...any) *Fault {
	x := &Fault{f: f, what: fmt.Sprintf(format, args...), left: n, asked: n}
	f.faults.asked = append(f.faults.asked, x)
	return x
}

// Silence makes addr unreachable from now on. Messages to it and from it are lost.
func (f *Fabric) Silence(addr string) *Fault {
	ip := netip.MustParseAddr(addr)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults.silent[ip] == nil {
		f.faults.silent[ip] = f.askLocked(1, "Silence(%q)", addr)
	}
	return f.faults.silent[ip]
}

// Unsilence ends the effect of Silence. It reports whether the address was silent.
func (f *Fabric) Unsilence(addr string) (was bool) {
	ip := netip.MustParseAddr(addr)
	f.mu.Lock()
	defer f.mu.Unlock()
	was = f.faults.silent[ip] != nil
	delete(f.faults.silent, ip)
	return was
}

// silencedLocked reports whether one of two addresses is silent.
func (f *Fabric) silencedLocked(a, b netip.Addr) bool {
	x, y := f.faults.silent[a.WithZone("")].hitLocked(), f.faults.silent[b.WithZone("")].hitLocked()
	return x || y
}

// Drop loses the next n messages of a kind.
func (f *Fabric) Drop(kind Message, n int) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.askLocked(n, "Drop(%v, %d)", kind, n)
	f.faults.drop[kind] = append(f.faults.drop[kind], x)
	return x
}

// droppedLocked reports whether Drop loses a message of that kind.
func (f *Fabric) droppedLocked(kind Message) bool {
	queue := &f.faults.drop[kind]
	for len(*queue) > 0 && (*queue)[0].left == 0 {
		*queue = (*queue)[1:]
	}
	return len(*queue) > 0 && (*queue)[0].hitLocked()
}

// Overlook makes the accepting sides of the next n connections overlook the first message, as
// soft-iWARP may (verbs.DeviceAttr.OverlooksFirst). They notice it when more comes from the peer.
// Overlook panics on a Fabric of other devices.
func (f *Fabric) Overlook(n int) *Fault {
	if !f.mayOverlook() {
		panic("cmidtest: only soft-iWARP overlooks messages")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.overlook = f.askLocked(n, "Overlook(%d)", n)
	return f.faults.overlook
}

// mayOverlook reports whether devices may overlook a first message.
func (f *Fabric) mayOverlook() bool { return f.iwarp && !f.embedded }

// isOverlooked reports whether Overlook applies to this first message, and counts it.
func (f *Fabric) isOverlooked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.faults.overlook
	return x != nil && x.left > 0 && x.hitLocked()
}

// Delay sets how long every message takes from now on, and how long address and route resolution
// take. The initial delay is 0, with which messages arrive in the next turn.
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
		delete(f.faults.slow, ip)
		return new(Fault)
	}
	x := f.askLocked(1, "LatencyFor(%q, %v)", addr, d)
	x.delay, f.faults.slow[ip] = d, x
	return x
}

// latencyLocked returns how long a message takes from one address to another.
func (f *Fabric) latencyLocked(a, b netip.Addr) time.Duration {
	d := f.faults.delay
	for _, ip := range [...]netip.Addr{a, b} {
		if x := f.faults.slow[ip.WithZone("")]; x.hitLocked() {
			d += x.delay
		}
	}
	return d
}

// Reorder lets events and completions overtake one another from now on, as Config.Seed decides. The
// same happens on a kernel device, which reports them on two file descriptors. Events stay in order
// among themselves, and so do completions.
func (f *Fabric) Reorder(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.reorder = on
}

// flipCoin returns true or false with equal probability. Without Reorder it returns false.
func (f *Fabric) flipCoin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults.reorder && f.rng.IntN(2) == 0
}

// RunOut makes every CreateID and CreateQP fail with errno (EMFILE, ENOMEM), until RunOut(0). With
// ENOMEM everything else that is made on a device fails as well: protection domains, memory
// regions, completion queues, shared receive queues and address handles.
func (f *Fabric) RunOut(errno unix.Errno) *Fault { return f.RunShort(errno, 1) }

// RunShort is RunOut with a probability: allocations fail now and then, as Config.Seed decides.
// RunOut(0) ends it.
func (f *Fabric) RunShort(errno unix.Errno, probability float64) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if errno == 0 {
		f.faults.runOut = nil
		return new(Fault)
	}
	what := fmt.Sprintf("RunOut(%s)", unix.ErrnoName(errno))
	if probability < 1 {
		what = fmt.Sprintf("RunShort(%s, %v)", unix.ErrnoName(errno), probability)
	}
	x := f.askLocked(1, "%s", what)
	x.errno, x.probability, f.faults.runOut = errno, probability, x
	return x
}

// allocError returns the errno of RunOut, if it fails this allocation.
func (f *Fabric) allocError(what resource) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch x := f.faults.runOut; {
	case x == nil:
	case x.errno != unix.ENOMEM && what != resIdentifier && what != resQP: // it needs no descriptor
	case x.probability < 1 && f.rng.Float64() >= x.probability:
	default:
		x.hitLocked()
		return x.errno
	}
	return nil
}

// Cut cuts the link between two hosts. What either sends to the other is lost, and no event reports
// the loss.
//
// Messages that the transport repeats arrive after Heal, in order. On iWARP, which runs over a
// stream, these are all messages. On InfiniBand these are the messages between queue pairs.
// Connection managers repeat their messages themselves.
//
// A sender that gets no acknowledgement gives up. An InfiniBand queue pair gives up after 17 s
// (verbs.StatusRetryExc). A stream gives up after 30 s with Config.Embedded, and after 15 minutes
// without it (Disconnected, ETIMEDOUT). A sender that has sent nothing does not notice the cut. A
// message that was already on its way, because of Delay or LatencyFor, arrives.
//
// To cut a link again does nothing. Cut panics if both hosts are the same.
func (f *Fabric) Cut(a, b *Host) *Fault {
	if a == b {
		panic("cmidtest: a host has no link to itself")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.faults.cuts[hostPair{a, b}]
	if c == nil {
		c = &cut{fault: f.askLocked(1, "Cut between %s and %s", a, b)}
		f.faults.cuts[hostPair{a, b}], f.faults.cuts[hostPair{b, a}] = c, c
	}
	return c.fault
}

// severedLocked reports whether the link between two hosts is cut.
func (f *Fabric) severedLocked(a, b *Host) bool {
	c := f.faults.cuts[hostPair{a, b}]
	return c != nil && c.fault.hitLocked()
}

// reachLocked returns the device with the address to, if messages from the address from get there.
// It returns nil if there is no answer.
func (f *Fabric) reachLocked(host *Host, from, to netip.Addr) *device {
	there := f.addrs[to.WithZone("")]
	if f.silencedLocked(from, to) || there == nil || f.severedLocked(host, there.host) {
		return nil
	}
	return there
}

// cutForLocked returns the cut on p's way, or nil.
func (f *Fabric) cutForLocked(p *packet) *cut {
	var from *Host
	if p.from.in != nil {
		from = p.from.in.host
	} else if d := f.addrs[p.src.WithZone("")]; d != nil { // a kernel sent it, for no identifier
		from = d.host
	}
	return f.faults.cuts[hostPair{from, p.to.in.host}]
}

// isRepeated reports whether the transport repeats messages of that kind until they are
// acknowledged.
func (f *Fabric) isRepeated(kind Message) bool {
	switch kind {
	case MsgSend, MsgAck, MsgWrite, MsgRead, MsgAtomic, MsgReadResponse:
		return true
	}
	return f.iwarp
}

// fate is what happens to a message on its way.
type fate uint8

const (
	fateArrives fate = iota
	fateLost
	fateWaits // until a link is healed
)

// fateOf decides what happens to p, and how long it takes.
func (f *Fabric) fateOf(p *packet) fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.to.in == nil || f.droppedLocked(p.kind) || f.silencedLocked(p.src, p.dst) {
		return fateLost
	}
	p.delay = f.latencyLocked(p.src, p.dst)
	c := f.cutForLocked(p)
	if c == nil {
		return fateArrives
	}
	c.fault.hitLocked()
	if f.isRepeated(p.kind) {
		c.waiting = append(c.waiting, *p)
		return fateWaits
	}
	return fateLost
}
