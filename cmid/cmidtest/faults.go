package cmidtest

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Fault is something that was asked to go wrong: by Silence, Drop, LatencyFor, RunOut or Cut. Its
// method is for any goroutine.
type Fault struct {
	f        *Fabric
	what     string
	left     int // how often it has still to happen
	asked    int
	optional bool

	delay time.Duration // LatencyFor's
	errno unix.Errno    // RunOut's
}

// Optional says that it need not happen: Missed does not tell of it.
func (x *Fault) Optional() {
	if x.f != nil {
		x.f.mu.Lock()
		defer x.f.mu.Unlock()
	}
	x.optional = true
}

// hit notes that it has happened, if there is such a fault. f.mu is held.
func (x *Fault) hit() (was bool) {
	if x != nil && x.left > 0 {
		x.left--
	}
	return x != nil
}

// Missed lists the faults that were asked for and have not happened, or not as often: a message of
// that kind was never sent, nobody has spoken to that address, nothing was made after RunOut. A
// test with such a fault has not tested what it says. Any goroutine.
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

// faults is what goes wrong on a Fabric.
type faults struct {
	asked   []*Fault // all that there were
	silent  map[netip.Addr]*Fault
	cuts    map[hostPair]*cut
	drop    [numMessages][]*Fault // the oldest first
	delay   time.Duration
	slow    map[netip.Addr]*Fault
	reorder bool
	runOut  *Fault // nil: there is room
}

// hostPair is two hosts. A cut is noted in either order.
type hostPair [2]*Host

// cut is a link that is cut.
type cut struct {
	fault   *Fault
	waiting []packet // to be repeated
}

// ask notes a fault that should happen n times. f.mu is held.
func (f *Fabric) ask(n int, format string, args ...any) *Fault {
	x := &Fault{f: f, what: fmt.Sprintf(format, args...), left: n, asked: n}
	f.faults.asked = append(f.faults.asked, x)
	return x
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
	x, y := f.faults.silent[a.WithZone("")].hit(), f.faults.silent[b.WithZone("")].hit()
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
		delete(f.faults.slow, ip)
		return new(Fault)
	}
	x := f.ask(1, "LatencyFor(%q, %v)", addr, d)
	x.delay, f.faults.slow[ip] = d, x
	return x
}

// latency is called with f.mu held.
func (f *Fabric) latency(a, b netip.Addr) time.Duration {
	d := f.faults.delay
	for _, ip := range [...]netip.Addr{a, b} {
		if x := f.faults.slow[ip.WithZone("")]; x.hit() {
			d += x.delay
		}
	}
	return d
}

// Reorder has events and completions overtake one another from now on, as they do on a kernel
// device, which tells of them on two file descriptors: the seed decides. Events stay in order
// among themselves, and so do completions.
func (f *Fabric) Reorder(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.reorder = on
}

// coin is a fair decision, false while nothing is reordered.
func (f *Fabric) coin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults.reorder && f.rng.IntN(2) == 0
}

// RunOut makes every CreateID and CreateQP fail with errno (EMFILE, ENOMEM), until it is told 0.
func (f *Fabric) RunOut(errno unix.Errno) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if errno == 0 {
		f.faults.runOut = nil
		return new(Fault)
	}
	x := f.ask(1, "RunOut(%s)", unix.ErrnoName(errno))
	x.errno, f.faults.runOut = errno, x
	return x
}

// exhausted is the errno of RunOut.
func (f *Fabric) exhausted() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.faults.runOut; x.hit() {
		return x.errno
	}
	return nil
}

// Cut cuts the link between two hosts: what either sends to the other is lost, and nobody is told.
// What its transport repeats arrives after Heal, in order: everything on iWARP, where it is a
// stream, and what queue pairs say to each other on InfiniBand (its connection managers repeat
// their messages themselves). Who gets no acknowledgement gives up: an InfiniBand queue pair after
// 17 s (verbs.StatusRetryExc), a stream after 30 s where Config.Embedded is set, after 15 minutes
// elsewhere (Disconnected, ETIMEDOUT). Who has nothing under way notices nothing. What was on its
// way already, because of Delay or LatencyFor, arrives. A link that is cut stays so; a host's link
// to itself cannot be cut, which panics.
func (f *Fabric) Cut(a, b *Host) *Fault {
	if a == b {
		panic("cmidtest: a host has no link to itself")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.faults.cuts[hostPair{a, b}]
	if c == nil {
		c = &cut{fault: f.ask(1, "Cut between %s and %s", a, b)}
		f.faults.cuts[hostPair{a, b}], f.faults.cuts[hostPair{b, a}] = c, c
	}
	return c.fault
}

// severed reports whether a link is cut, which keeps one host from finding the other. f.mu is held.
func (f *Fabric) severed(a, b *Host) bool {
	c := f.faults.cuts[hostPair{a, b}]
	return c != nil && c.fault.hit()
}

// reach is the device at to, if what from says gets there; nil: nobody answers. f.mu is held.
func (f *Fabric) reach(host *Host, from, to netip.Addr) *device {
	there := f.addrs[to.WithZone("")]
	if f.silenced(from, to) || there == nil || f.severed(host, there.host) {
		return nil
	}
	return there
}

// cutFor is the cut that p meets; nil: none. f.mu is held.
func (f *Fabric) cutFor(p *packet) *cut {
	var from *Host
	if p.from.in != nil {
		from = p.from.in.host
	} else if d := f.addrs[p.src.WithZone("")]; d != nil { // a kernel that answers for nobody
		from = d.host
	}
	return f.faults.cuts[hostPair{from, p.to.in.host}]
}

// repeated reports whether a transport repeats messages of that kind until they are acknowledged.
func (f *Fabric) repeated(kind Message) bool {
	switch kind {
	case MsgSend, MsgAck, MsgWrite, MsgRead, MsgAtomic, MsgReadResponse:
		return true
	}
	return f.iwarp
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
	if f.dropped(p.kind) || f.silenced(p.src, p.dst) {
		return fateLost
	}
	p.delay = f.latency(p.src, p.dst)
	c := f.cutFor(p)
	if c == nil {
		return fateArrives
	}
	c.fault.hit()
	if f.repeated(p.kind) {
		c.waiting = append(c.waiting, *p)
		return fateWaits
	}
	return fateLost
}
