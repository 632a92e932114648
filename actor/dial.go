package actor

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// attempts is a Dial or a Serve under way. It tries one address after the other, until one works.
type attempts struct {
	table *commandTable
	of    dialer
	p     *cmid.Pending       // the Dial or Serve
	name  string              // of a Dial: its name for the other side
	host  string              // of a Dial: the host in its address
	try   func(cmid.AddrInfo) // takes the steps for one address; the last ends in handleAnswer
	addrs []cmid.AddrInfo     // the one being tried first
	spent bool                // an address was tried: the next one needs a new identifier
	by    time.Time           // the addresses share the time until then; zero: they share none
	due   time.Time           // the steps for the present address end then; zero: they share none
	why   Failure             // of the address that has got furthest; nil: none has failed
	// the next step, which waits in the loop's dialQueue since queued; nil: none waits
	pending func()
	queued  time.Time
}

// dialer is the actor of the identifier that dials or serves.
type dialer interface {
	// prepareConnect makes the queue pair and the private data of a Connect, and lets it proceed.
	prepareConnect(p *cmid.Pending)
	// renewID gives the actor a new identifier in place of a used one.
	renewID() error
	// destroyID ends the identifier.
	destroyID(cause error)
}

// leastShare is the least time for an address that is not the last one, as in net.Dialer.
const leastShare = 2 * time.Second

// checkComposite checks what Dial and Serve ask for. They need an idle identifier, because each
// further address needs a new one.
func (t *commandTable) checkComposite(cmd Command, addr string, sender *actor.PID) (node, service string, ok bool) {
	node, service, err := net.SplitHostPort(addr)
	switch s := t.id.State(); {
	case s != states.Idle:
		err = fmt.Errorf("%v: %s needs a new identifier: %w", s, opName(cmd), unix.EINVAL)
	case t.attempts != nil:
		err = fmt.Errorf("another Dial or Serve is in progress: wait for its answer, or send DestroyID: %w", unix.EBUSY)
	case err != nil:
		err = fmt.Errorf("address %q: %w: want HOST:PORT (%w)", addr, err, unix.EINVAL)
	case service == "":
		err = fmt.Errorf("address %q: want HOST:PORT (%w)", addr, unix.EINVAL)
	default:
		return node, service, true
	}
	t.answerFailed(cmd, sender, err)
	return "", "", false
}

// takeAddrs takes the result of the look-up.
func (a *attempts) takeAddrs(info []cmid.AddrInfo, err error) {
	if err != nil {
		a.failAndDestroy(a.table.addrInfoError(a.p.Command, err))
		return
	}
	a.addrs = info
	a.tryNext()
}

// tryNext tries the next address.
func (a *attempts) tryNext() {
	if a.spent {
		if err := a.of.renewID(); err != nil {
			a.failAndDestroy(a.table.commandFailed(a.p.Command, err))
			return
		}
	}
	a.spent = true
	a.shareTime()
	a.try(a.addrs[0])
}

// shareTime sets the deadline of the present address to its part of the remaining time. The last
// address has no deadline but the command's and those of its steps.
func (a *attempts) shareTime() {
	a.due = time.Time{}
	if n := len(a.addrs); n > 1 && !a.by.IsZero() {
		now := a.table.l.el.Now()
		a.due = now.Add(max(a.by.Sub(now)/time.Duration(n), leastShare))
	}
}

// stepDeadline returns the earlier of due and the present address's deadline.
func (a *attempts) stepDeadline(due time.Time) time.Time {
	if a.due.IsZero() || due.Before(a.due) {
		return due
	}
	return a.due
}

// executeStep executes cmd, and calls then if it has succeeded.
func (a *attempts) executeStep(cmd Command, then func()) {
	a.table.executeStep(cmd, nil, func(ev Event) {
		if f, ok := ev.(Failure); ok {
			a.handleFailure(f)
			return
		}
		then()
	})
}

// whenTurn begins an expensive step, or the first of several, as soon as the loop has time for it.
func (a *attempts) whenTurn(begin func()) {
	if q := &a.table.l.dials; !q.tryNow(begin) {
		a.pending, a.queued = begin, a.table.l.el.Now()
		q.queueStep(a)
	}
}

// waitsForTurn reports whether a step waits for its turn.
func (a *attempts) waitsForTurn() bool {
	return a.pending != nil && a.table.attempts == a && !a.table.isEnding()
}

// resumeStep begins the pending step. The address's deadline moves by the time that the step has
// waited, because the address did not cause the wait.
func (a *attempts) resumeStep() {
	if !a.waitsForTurn() {
		return
	}
	begin := a.pending
	a.pending = nil
	if !a.due.IsZero() {
		a.due = a.due.Add(a.table.l.el.Now().Sub(a.queued))
	}
	begin()
}

// handleAnswer handles the last step's answer.
func (a *attempts) handleAnswer(ev Event) {
	if f, ok := ev.(Failure); ok {
		a.handleFailure(f)
		return
	}
	a.table.attempts = nil
	a.table.answerPending(a.p, ev)
}

// handleFailure tries the next address, unless none is left or the peer's application rejected the
// request. A rejection by the peer's CM may concern this address only.
func (a *attempts) handleFailure(f Failure) {
	if r, ok := f.(*cmid.Rejected); ok && r.Reason.ByApplication() {
		a.addrs = a.addrs[:1]
	}
	if a.why == nil || isConnect(f) || !isConnect(a.why) {
		a.why = f
	}
	if len(a.addrs) <= 1 {
		a.failAndDestroy(a.why)
		return
	}
	a.addrs = a.addrs[1:]
	a.tryNext()
}

// isConnect reports whether an address has failed at the last step. Such a failure is more
// informative than that of an address without a route, such as an IPv6 address on a host without
// IPv6.
func isConnect(f Failure) bool {
	_, ok := f.Failed().(*cmid.Connect)
	return ok
}

// failAndDestroy answers the command, and destroys the identifier.
func (a *attempts) failAndDestroy(f Failure) {
	restoreCommand(f, a.p.Command)
	a.p.Answer(f)
	a.of.destroyID(f)
}

// startDial connects, in the steps that librdmacm has for it.
func (t *commandTable) startDial(c *Dial, sender *actor.PID, of dialer) {
	node, service, ok := t.checkComposite(c, c.Addr, sender)
	if !ok {
		return
	}
	p, now := t.expectCommand(c, sender), t.l.el.Now()
	if c.Timeout > 0 {
		p.Due = now.Add(c.Timeout)
	}
	t.resetTimer()
	timeouts := &t.l.rt.cfg.Timeouts
	a := &attempts{
		table: t, of: of, p: p, name: cmp.Or(c.Name, c.Addr), host: node, by: now.Add(positiveOr(c.Timeout, timeouts.Connect)),
	}
	t.attempts = a
	a.try = func(ai cmid.AddrInfo) {
		connect := func() {
			c := &cmid.Connect{PrivateData: ai.PrivateData(c.PrivateData), Param: c.Param}
			t.executeStep(c, of.prepareConnect, a.handleAnswer)
		}
		a.whenTurn(func() {
			a.executeStep(&cmid.ResolveAddr{Src: ai.Src, Dst: ai.Dst, Timeout: timeouts.Address}, func() {
				a.executeStep(&cmid.ResolveRoute{Timeout: timeouts.Route}, func() { a.whenTurn(connect) })
			})
		})
	}
	t.lookUp(p, node, service, &cmid.AddrInfo{PortSpace: t.id.PortSpace(), QPType: t.cfg.QPType, Src: c.Src}, func(info []cmid.AddrInfo, err error) {
		a.takeAddrs(firstOf(reachableFrom(info, c.Src), c.First), err)
	})
}

// reachableFrom leaves out the addresses of another family than src: they cannot be reached from
// it, and would take time from the others. If all are of another family it keeps them, and the
// device returns the error.
func reachableFrom(info []cmid.AddrInfo, src cmid.Addr) []cmid.AddrInfo {
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

// startServe listens, in the steps that librdmacm has for it.
func (t *commandTable) startServe(c *Serve, sender *actor.PID, of dialer) {
	node, service, ok := t.checkComposite(c, c.Addr, sender)
	if !ok {
		return
	}
	p := t.expectCommand(c, sender)
	a := &attempts{table: t, of: of, p: p}
	t.attempts = a
	if err := t.cfg.checkListen(); err != nil {
		a.failAndDestroy(t.commandFailed(c, err))
		return
	}
	a.try = func(ai cmid.AddrInfo) {
		a.executeStep(&cmid.BindAddr{Addr: ai.Src}, func() {
			t.executeStep(&cmid.Listen{Backlog: c.Backlog}, nil, func(ev Event) {
				if l, ok := ev.(*cmid.Listening); ok && onLoopback(l.Local) && !namesLoopback(node) {
					t.l.rt.log.Warn("rdma: the name is a loopback address here, so only this machine can connect: "+
						"listen on an address of the network, or on \":PORT\"", t.logKeys(states.OpListen, "addr", c.Addr)...)
				}
				a.handleAnswer(ev)
			})
		})
	}
	t.lookUp(p, node, service, &cmid.AddrInfo{Flags: cmid.RAIPassive, PortSpace: t.id.PortSpace(), QPType: t.cfg.QPType}, func(info []cmid.AddrInfo, err error) {
		a.takeAddrs(listenOrder(info), err)
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
