package actor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// attempts is a Dial or a Serve under way. It tries one address after the other, until one works.
type attempts struct {
	it    *ident
	p     *cmid.Pending       // the Dial or Serve
	name  string              // of a Dial: its name for the other side
	host  string              // of a Dial: the host in its address
	try   func(cmid.AddrInfo) // takes the steps for one address; the last ends in outcome
	addrs []cmid.AddrInfo     // the one being tried first
	spent bool                // an address was tried: the next one needs a new identifier
	by    time.Time           // the addresses share the time until then; zero: they share none
	due   time.Time           // the steps for the present address end then; zero: they share none
	why   Failure             // of the address that has got furthest; nil: none has failed
	// the next step, which waits in the loop's dialQueue since queued; nil: none waits
	pending func()
	queued  time.Time
}

// leastShare is the least time for an address that is not the last one, as in net.Dialer.
const leastShare = 2 * time.Second

// composite checks what Dial and Serve ask for. They need an idle identifier, because each further
// address needs a new one.
func (it *ident) composite(cmd Command, addr string, sender *actor.PID) (node, service string, ok bool) {
	node, service, err := net.SplitHostPort(addr)
	switch s := it.id.State(); {
	case s != states.Idle:
		err = fmt.Errorf("%v: %s needs a new identifier: %w", s, opName(cmd), unix.EINVAL)
	case it.attempts != nil:
		err = fmt.Errorf("another Dial or Serve is in progress: wait for its answer, or send DestroyID: %w", unix.EBUSY)
	case err != nil:
		err = fmt.Errorf("address %q: %w: want HOST:PORT (%w)", addr, err, unix.EINVAL)
	case service == "":
		err = fmt.Errorf("address %q: want HOST:PORT (%w)", addr, unix.EINVAL)
	default:
		return node, service, true
	}
	it.fail(cmd, sender, err)
	return "", "", false
}

// begin takes the result of the look-up.
func (t *attempts) begin(info []cmid.AddrInfo, err error) {
	if err != nil {
		t.fail(t.it.addrInfoError(t.p.Command, err))
		return
	}
	t.addrs = info
	t.next()
}

// next tries an address.
func (t *attempts) next() {
	if t.spent {
		if err := t.it.renew(); err != nil {
			t.fail(t.it.commandFailed(t.p.Command, err))
			return
		}
	}
	t.spent = true
	t.shareTime()
	t.try(t.addrs[0])
}

// shareTime sets the deadline of the present address to its part of the remaining time. The last
// address has no deadline but the command's and those of its steps.
func (t *attempts) shareTime() {
	t.due = time.Time{}
	if n := len(t.addrs); n > 1 && !t.by.IsZero() {
		now := t.it.l.el.Now()
		t.due = now.Add(max(t.by.Sub(now)/time.Duration(n), leastShare))
	}
}

// stepDeadline returns the earlier of due and the present address's deadline.
func (t *attempts) stepDeadline(due time.Time) time.Time {
	if t.due.IsZero() || due.Before(t.due) {
		return due
	}
	return t.due
}

// step executes cmd, and calls then if it has succeeded.
func (t *attempts) step(cmd Command, then func()) {
	t.it.doInner(cmd, nil, func(ev Event) {
		if f, ok := ev.(Failure); ok {
			t.failed(f)
			return
		}
		then()
	})
}

// whenTurn begins an expensive step, or the first of several, as soon as the loop has time for it.
func (t *attempts) whenTurn(begin func()) {
	if q := &t.it.l.dials; !q.tryNow(begin) {
		t.pending, t.queued = begin, t.it.l.el.Now()
		q.add(t)
	}
}

// waits reports whether a step waits for its turn.
func (t *attempts) waits() bool { return t.pending != nil && t.it.attempts == t && !t.it.ending() }

// resume begins the pending step. The address's deadline moves by the time that the step has
// waited, because the address did not cause the wait.
func (t *attempts) resume() {
	if !t.waits() {
		return
	}
	begin := t.pending
	t.pending = nil
	if !t.due.IsZero() {
		t.due = t.due.Add(t.it.l.el.Now().Sub(t.queued))
	}
	begin()
}

// outcome handles the last step's answer.
func (t *attempts) outcome(ev Event) {
	if f, ok := ev.(Failure); ok {
		t.failed(f)
		return
	}
	t.it.attempts = nil
	t.it.answer(t.p, ev)
}

// failed tries the next address, unless none is left or the peer's application rejected the
// request. A rejection by the peer's CM may concern this address only.
func (t *attempts) failed(f Failure) {
	if r, ok := f.(*cmid.Rejected); ok && r.Reason.ByApplication() {
		t.addrs = t.addrs[:1]
	}
	if t.why == nil || isConnect(f) || !isConnect(t.why) {
		t.why = f
	}
	if len(t.addrs) <= 1 {
		t.fail(t.why)
		return
	}
	t.addrs = t.addrs[1:]
	t.next()
}

// isConnect reports whether an address has failed at the last step. Such a failure is more
// informative than that of an address without a route, such as an IPv6 address on a host without
// IPv6.
func isConnect(f Failure) bool {
	_, ok := f.Failed().(*cmid.Connect)
	return ok
}

// fail answers the command, and destroys the identifier.
func (t *attempts) fail(f Failure) {
	restore(f, t.p.Command)
	t.p.Answer(f)
	t.it.destroy(f)
}

// renew gives the actor a new identifier in place of a used one.
func (it *ident) renew() error {
	old, conn := it.id, it.conn
	id, err := it.createDevice()
	if err != nil {
		return err
	}
	old.Context = nil
	it.moveOut()
	it.handshake.failed(FailedLost, nil) // the failed attempt's handshake
	it.handshake.end(nil)
	it.handshake = nil
	it.conn, it.notifiable, it.id, id.Context = nil, false, id, it
	id.Inherit(old)
	for _, p := range slices.Clone(old.Pending()) {
		if !p.Inner {
			p.Answer(it.late(p.Command))
		}
	}
	it.l.discard(old, conn)
	it.moved(states.OpDestroyID)
	for _, o := range it.options {
		id.Do(o, nil) // a refused option is refused again
	}
	return nil
}

// dial connects, in the steps that librdmacm has for it.
func (it *ident) dial(c *Dial, sender *actor.PID) {
	node, service, ok := it.composite(c, c.Addr, sender)
	if !ok {
		return
	}
	p, now := it.expect(c, sender), it.l.el.Now()
	if c.Timeout > 0 {
		p.Due = now.Add(c.Timeout)
	}
	it.rearm()
	t := &attempts{it: it, p: p, name: cmp.Or(c.Name, c.Addr), host: node, by: now.Add(positive(c.Timeout, it.rt.cfg.Timeouts.Connect))}
	it.attempts = t
	t.try = func(ai cmid.AddrInfo) {
		timeouts := &it.rt.cfg.Timeouts
		connect := func() {
			c := &cmid.Connect{PrivateData: ai.PrivateData(c.PrivateData), Param: c.Param}
			it.doInner(c, func(p *cmid.Pending) { it.connect(p, c) }, t.outcome)
		}
		t.whenTurn(func() {
			t.step(&cmid.ResolveAddr{Src: ai.Src, Dst: ai.Dst, Timeout: timeouts.Address}, func() {
				t.step(&cmid.ResolveRoute{Timeout: timeouts.Route}, func() { t.whenTurn(connect) })
			})
		})
	}
	it.lookUp(p, node, service, &cmid.AddrInfo{PortSpace: it.id.PortSpace(), QPType: it.cfg.QPType, Src: c.Src}, func(info []cmid.AddrInfo, err error) {
		t.begin(firstOf(from(info, c.Src), c.First), err)
	})
}

// from leaves out the addresses of another family than src: they cannot be reached from it, and
// would take time from the others. If all are of another family it keeps them, and the device
// returns the error.
func from(info []cmid.AddrInfo, src cmid.Addr) []cmid.AddrInfo {
	if src.IsZero() {
		return info
	}
	same := slices.DeleteFunc(slices.Clone(info), func(a cmid.AddrInfo) bool { return !a.Dst.SameFamily(src) })
	if len(same) == 0 {
		return info
	}
	return same
}

// firstOf puts the address first before the others, if it is among them.
func firstOf(info []cmid.AddrInfo, first cmid.Addr) []cmid.AddrInfo {
	slices.SortStableFunc(info, func(a, b cmid.AddrInfo) int {
		switch {
		case a.Dst == b.Dst || a.Dst != first && b.Dst != first:
			return 0
		case a.Dst == first:
			return -1
		}
		return 1
	})
	return info
}

// serve listens, in the steps that librdmacm has for it.
func (it *ident) serve(c *Serve, sender *actor.PID) {
	node, service, ok := it.composite(c, c.Addr, sender)
	if !ok {
		return
	}
	p := it.expect(c, sender)
	t := &attempts{it: it, p: p}
	it.attempts = t
	if err := it.cfg.canListen(); err != nil {
		t.fail(it.commandFailed(c, err))
		return
	}
	t.try = func(ai cmid.AddrInfo) {
		t.step(&cmid.BindAddr{Addr: ai.Src}, func() {
			it.doInner(&cmid.Listen{Backlog: c.Backlog}, nil, func(ev Event) {
				if l, ok := ev.(*cmid.Listening); ok && onLoopback(l.Local) && !namesLoopback(node) {
					it.log.Warn("rdma: the name is a loopback address here, so only this machine can connect: "+
						"listen on an address of the network, or on \":PORT\"", it.logKeys(states.OpListen, "addr", c.Addr)...)
				}
				t.outcome(ev)
			})
		})
	}
	it.lookUp(p, node, service, &cmid.AddrInfo{Flags: cmid.RAIPassive, PortSpace: it.id.PortSpace(), QPType: it.cfg.QPType}, func(info []cmid.AddrInfo, err error) {
		t.begin(listenOrder(info), err)
	})
}

// namesLoopback reports whether node is a literal address, or a name that means loopback
// everywhere. Other names may mean it on the host that has them: Debian's hosts file has 127.0.1.1
// for the host's own name.
func namesLoopback(node string) bool {
	if _, err := netip.ParseAddr(node); err == nil || node == "" {
		return true
	}
	name := strings.TrimSuffix(strings.ToLower(node), ".")
	return name == "localhost" || name == "ip6-localhost" || name == "ip6-loopback" || strings.HasSuffix(name, ".localhost")
}

// listenOrder puts :: first, which listens for both families unless the host has no IPv6, and the
// other IPv4 addresses before IPv6's, as net.Listen does: of a name such as localhost the one that
// most peers try.
func listenOrder(info []cmid.AddrInfo) []cmid.AddrInfo {
	rank := func(i cmid.AddrInfo) int {
		switch ip := i.Src.Addr(); {
		case i.Src.IsWildcard() && ip.Is6():
			return 0
		case ip.Is4():
			return 1
		}
		return 2
	}
	slices.SortStableFunc(info, func(a, b cmid.AddrInfo) int { return rank(a) - rank(b) })
	return info
}

// lookUp is rdma_getaddrinfo(3) for a command that waits. A look-up of literals is done
// immediately. Any other has a goroutine, since a name server may take its time.
func (it *ident) lookUp(p *cmid.Pending, node, service string, hints *cmid.AddrInfo, then func([]cmid.AddrInfo, error)) {
	if literal(node, service) {
		then(it.rt.resolve(context.Background(), node, service, hints))
		return
	}
	ctx, box := it.rt.lookups, it.box
	timeout := it.rt.cfg.Timeouts.Connect
	it.rt.running.Add(1)
	it.rt.Scheduler().Go(func() {
		defer it.rt.running.Done()
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		info, err := it.rt.resolve(ctx, node, service, hints)
		it.rt.Scheduler().Resume()
		box.PostUserMessage(&lookedUp{p, info, err, then})
	})
}

// lookedUp continues the command, if it still waits.
func (it *ident) lookedUp(m *lookedUp) {
	if !it.ending() && slices.Contains(it.id.Pending(), m.of) {
		m.then(m.info, m.err)
	}
}

// literal reports whether a look-up needs no name server.
func literal(node, service string) bool {
	if _, err := netip.ParseAddr(node); err != nil && node != "" {
		return false
	}
	_, err := strconv.ParseUint(service, 10, 16)
	return err == nil || service == ""
}

func (it *ident) getAddrInfo(c *cmid.GetAddrInfo, sender *actor.PID) {
	p := it.expect(c, sender)
	p.Due = it.l.el.Now().Add(it.phase(c))
	it.rearm()
	it.lookUp(p, c.Node, c.Service, c.Hints, func(info []cmid.AddrInfo, err error) {
		if err != nil {
			p.Answer(it.addrInfoError(c, err))
			return
		}
		p.Answer(&cmid.AddrInfoResolved{EventBase: it.base(), Info: info})
	})
}

func (it *ident) addrInfoError(cmd Command, err error) Failure {
	return &cmid.AddrInfoError{FailureBase: it.failure(cmd, opName(cmd), err)}
}
