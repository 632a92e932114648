package iwarp

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/hostile"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// arena is two nodes that exchange messages all the time. Hostile peers connect to the listener of
// one node, or the other node connects to them.
type arena struct {
	t              *testing.T
	client, server *node
	lh             cmid.Handle
	at             cmid.Addr
	lair           *net.TCPListener // here hostile peers answer
	steady         pingPong         // the connection that exists before and after each attack
	asked, turns   int              // its rounds, and the loops' turns
	receives       int              // posted by a victim
	receiveLen     int
	regionLen      int
	victims        map[cmid.Handle]*victim
	goodChild      cmid.Handle
	memory         map[*node][2]*verbs.MR // receives and Reads of victims
	reads          uint32
	script         func(*victim) // work requests of a victim after Established
	each           func()        // is called each turn
	quiet          leftovers
	shared         bool // other arenas play in this process
}

// victim is an end of a connection with a hostile peer.
type victim struct {
	n         *node
	h         cmid.Handle
	qp        verbs.QP
	refused   error // Accept's
	delivered []delivered
	wcs       []verbs.WC
	atEnd     int // completions when the end was delivered
	reads     int // posted Reads, or those of the script
	over      bool
}

// ends returns 1 for events that end an identifier.
func ends(k states.Kind) int {
	switch k {
	case states.KindDisconnected, states.KindConnectError, states.KindRejected, states.KindUnreachable:
		return 1
	}
	return 0
}

func (v *victim) end() delivered {
	for _, e := range v.delivered {
		if ends(e.kind) == 1 {
			return e
		}
	}
	return delivered{}
}

// attacked is how an attack ended.
type attacked struct {
	peer   hostile.Result // the last connection's
	tries  int            // connections
	victim *victim        // nil: nothing was delivered to the owner
}

func (g *attacked) refused() error {
	if g.victim == nil {
		return nil
	}
	return g.victim.refused
}

func newArena(t *testing.T, opts ...option) *arena {
	t.Helper()
	return newArenaWith(t, hostile.Receives, hostile.ReceiveLen, opts...)
}

// newArenaWith makes an arena whose victims post that many receives of that size.
func newArenaWith(t *testing.T, receives, receiveLen int, opts ...option) *arena {
	t.Helper()
	return newArenaOf(t, newNode(t, opts...), newNode(t, opts...), receives, receiveLen)
}

func newArenaOf(t *testing.T, client, server *node, receives, receiveLen int) *arena {
	t.Helper()
	a := &arena{
		t: t, receives: receives, receiveLen: receiveLen, regionLen: hostile.RegionLen,
		victims: make(map[cmid.Handle]*victim), memory: make(map[*node][2]*verbs.MR),
		client: client, server: server,
	}
	a.lh, a.at = a.server.listen("127.0.0.1:0")
	var err error
	if a.lair, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.lair.Close() })
	h := a.client.resolve(a.at)
	a.steady = pingPong{client: a.client, server: a.server, cq: newPinger(t, a.client, h, false)}
	a.client.do(h, &cmid.Connect{})
	child := a.server.wait(a.lh, states.KindConnectRequest, a.client).child
	a.steady.sq = newPinger(t, a.server, child, true)
	a.server.do(child, &cmid.Accept{})
	a.client.wait(h, states.KindEstablished, a.server)
	a.server.wait(child, states.KindEstablished, a.client)
	for _, n := range []*node{a.client, a.server} {
		n.react = func(e delivered) { a.hear(n, e) }
		pd := n.in.dev.PD()
		a.memory[n] = [2]*verbs.MR{
			a.alloc(n, pd, a.receives*a.receiveLen, verbs.LocalWrite), a.alloc(n, pd, a.regionLen, verbs.LocalWrite|verbs.RemoteWrite),
		}
	}
	a.good()
	x, _ := hostile.Find("HTTP") // creates the descriptors of Go's own poller
	a.settled()
	a.attack(x, hostile.Dials, hostile.Options{})
	a.settled()
	a.quiet = a.left()
	return a
}

// on goes on as the subtest t, which is a goroutine more.
func (a *arena) on(t *testing.T) {
	a.t, a.client.t, a.server.t = t, t, t
	a.quiet.goroutines = runtime.NumGoroutine()
}

// share marks the arena as one of several in this process: it no longer regards the process's
// descriptors and goroutines as its own.
func (a *arena) share() {
	a.shared = true
	a.quiet.fds, a.quiet.goroutines = 0, 0
}

// until runs both loops until done returns true, while the steady connection is active.
func (a *arena) until(what string, done func() bool) {
	a.t.Helper()
	from, end := a.steady.cq.heard, time.Now().Add(patience)
	for !done() || a.steady.cq.heard < from+2 {
		if time.Now().After(end) {
			a.t.Fatalf("%s: not within %v; left %+v, was %+v; steady connection: %d of %d\nclient %v\nserver %v", what, patience,
				a.left(), a.quiet, a.steady.cq.heard, a.asked, a.client.events, a.server.events)
		}
		a.turn()
	}
}

func (a *arena) turn() {
	a.t.Helper()
	if a.steady.cq.heard == a.asked {
		if err := a.steady.cq.qp.PostSend(&a.steady.cq.send); err != nil {
			a.t.Fatalf("the steady connection: %v", err)
		}
		a.asked++
	}
	for _, n := range []*node{a.client, a.server} {
		if err := n.loop.Turn(); err != nil {
			a.t.Fatal(err)
		}
		if n.loop.Stats().Panics > 0 {
			a.t.Fatal("something in the loop has panicked: see the log")
		}
	}
	if a.steady.cq.err != nil || a.steady.sq.err != nil {
		a.t.Fatalf("the steady connection: %v, %v", a.steady.cq.err, a.steady.sq.err)
	}
	if a.each != nil {
		a.each()
	}
	if a.turns++; a.turns%16 == 0 {
		// the hostile peer is a separate thread, and there may be few processors
		time.Sleep(20 * time.Microsecond)
	}
	runtime.Gosched()
}

// hear handles the events of every identifier except those of the steady connection.
func (a *arena) hear(n *node, e delivered) {
	if v := a.victims[e.h]; v != nil {
		a.suffer(v, e)
		return
	}
	if e.kind != states.KindConnectRequest {
		return
	}
	if e.private == "good" {
		a.goodChild = e.child
		return
	}
	v := a.victim(n, e.child)
	if v.refused = n.in.ids[e.child].Do(&cmid.Accept{}); v.refused != nil {
		n.do(e.child, &cmid.DestroyID{})
		v.over = true
	}
}

// suffer handles an event of a victim, and posts the victim's Read.
func (a *arena) suffer(v *victim, e delivered) {
	switch {
	case e.kind == states.KindAddrResolved || e.kind == states.KindRouteResolved:
		return
	case e.kind == states.KindEstablished && a.reads > 0:
		v.reads++
		wr := verbs.SendWR{ID: 99, Op: verbs.Read, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: a.memory[v.n][1], Length: a.reads}}, RKey: 1}
		if err := v.qp.PostSend(&wr); err != nil {
			a.t.Errorf("the victim's Read: %v", err)
		}
	}
	if e.kind == states.KindEstablished && a.script != nil {
		a.script(v)
	}
	v.delivered = append(v.delivered, e)
	v.collect()
	v.atEnd = len(v.wcs)
}

// collect moves a victim's completions out of the node's.
func (v *victim) collect() {
	for _, wc := range v.n.wcs {
		if wc.QP == v.qp {
			v.wcs = append(v.wcs, wc)
		}
	}
	v.n.wcs = v.n.wcs[:0]
}

// victim gives h a queue pair with receives.
func (a *arena) victim(n *node, h cmid.Handle) *victim {
	a.t.Helper()
	v := &victim{n: n, h: h}
	var err error
	v.qp, err = n.in.ids[h].CreateQP(verbs.QPInitAttr{SendCQ: n.cq, RecvCQ: n.cq, MaxSendWR: 16, MaxRecvWR: 16})
	if err != nil {
		a.t.Fatal(err)
	}
	for i := range a.receives {
		sge := verbs.SGE{MR: a.memory[n][0], Offset: uint32(i * a.receiveLen), Length: uint32(a.receiveLen)}
		if err := v.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGE: sge}); err != nil {
			a.t.Fatal(err)
		}
	}
	a.victims[h] = v
	return v
}

func (a *arena) alloc(n *node, pd verbs.PD, size int, access verbs.Access) *verbs.MR {
	a.t.Helper()
	mr, err := pd.Alloc(size, access)
	if err != nil {
		a.t.Fatal(err)
	}
	return mr
}

// attack uses x against the server's listener (Dials) or the client (Answers), and runs until
// nothing is left to be delivered.
func (a *arena) attack(x *hostile.Exchange, side hostile.Side, o hostile.Options) attacked {
	a.t.Helper()
	return a.attackWith(x, side, o, nil)
}

// attackWith attacks, with an action during the attack.
func (a *arena) attackWith(x *hostile.Exchange, side hostile.Side, o hostile.Options, meanwhile func()) attacked {
	a.t.Helper()
	n := a.server
	if side == hostile.Answers {
		n = a.client
	}
	if x.Regions {
		r := a.regions(n)
		defer a.free(n, r)
		o.Regions = r.known
	}
	a.reads = x.Reads
	defer func() { a.reads = 0 }()
	results := make(chan []hostile.Result, 1)
	serving := side == hostile.Answers
	if !serving {
		go func() {
			r, err := x.Dial(a.t.Context(), fmt.Sprintf("127.0.0.1:%d", a.at.Port()), o)
			if err != nil {
				r.Wrong = err.Error()
			}
			results <- []hostile.Result{r}
		}()
	} else {
		a.serve(time.Time{})
		ctx := a.t.Context()
		go func() { results <- x.Serve(ctx, a.lair, o) }()
		a.dial()
	}
	if meanwhile != nil {
		meanwhile()
	}
	var all []hostile.Result
	a.until("the end of "+x.Name, func() bool {
		a.bury()
		if serving && a.delivered() {
			a.serve(time.Unix(1, 0)) // no longer
			serving = false
		}
		if all == nil && !serving {
			select {
			case all = <-results:
			default:
			}
		}
		return all != nil
	})
	// it may be gone before we have accepted its connection
	a.until("what is reported of "+x.Name, func() bool {
		a.bury()
		return a.delivered() && a.client.in.conns == 1 && a.server.in.conns == 1
	})
	got := attacked{tries: len(all)}
	if len(all) > 0 {
		got.peer = all[len(all)-1]
	}
	for _, v := range a.victims {
		got.victim = v
	}
	if len(a.victims) > 1 || got.tries > 2 {
		a.t.Errorf("%d victims, %d connections: want one, and at most one more try", len(a.victims), got.tries)
	}
	clear(a.victims)
	return got
}

// serve sets the time until which the lair accepts connections.
func (a *arena) serve(until time.Time) {
	a.t.Helper()
	if err := a.lair.SetDeadline(until); err != nil {
		a.t.Fatal(err)
	}
}

// dial connects the client to the lair.
func (a *arena) dial() {
	a.t.Helper()
	h := a.client.resolve(cmid.MustAddr(a.lair.Addr().String()))
	a.victim(a.client, h)
	depth := uint8(hostile.Depth)
	a.client.do(h, &cmid.Connect{Param: &cmid.ConnParam{ResponderResources: depth, InitiatorDepth: depth}})
}

// delivered reports whether every victim is over: its end was delivered, and it was destroyed.
func (a *arena) delivered() bool {
	for _, v := range a.victims {
		if !v.over {
			return false
		}
	}
	return true
}

// bury destroys the victims whose end was delivered.
func (a *arena) bury() {
	for _, v := range a.victims {
		if !v.over && ends(v.end().kind) == 1 {
			v.n.do(v.h, &cmid.DestroyID{})
			v.collect()
			v.over = true
		}
	}
}

// good connects to the listener, exchanges messages both ways, and disconnects.
func (a *arena) good() {
	a.t.Helper()
	a.goodChild = 0
	h := a.client.resolve(a.at)
	cq := newPinger(a.t, a.client, h, false)
	a.client.do(h, &cmid.Connect{PrivateData: []byte("good")})
	a.until("a good connection's request", func() bool { return a.goodChild != 0 })
	child := a.goodChild
	sq := newPinger(a.t, a.server, child, true)
	a.server.do(child, &cmid.Accept{})
	a.until("a good connection", func() bool {
		return a.client.found(h, states.KindEstablished) != nil && a.server.found(child, states.KindEstablished) != nil
	})
	if err := cq.qp.PostSend(&cq.send); err != nil {
		a.t.Fatal(err)
	}
	a.until("a good connection's echo", func() bool { return cq.heard == 1 })
	a.client.do(h, &cmid.Disconnect{})
	a.until("a good connection's end", func() bool {
		return a.client.found(h, states.KindDisconnected) != nil && a.server.found(child, states.KindDisconnected) != nil
	})
	for _, e := range []*delivered{a.client.found(h, states.KindDisconnected), a.server.found(child, states.KindDisconnected)} {
		if e.err != nil {
			a.t.Errorf("a good connection ended with %v", e)
		}
	}
	a.client.do(h, &cmid.DestroyID{})
	a.server.do(child, &cmid.DestroyID{})
	for _, p := range []*pinger{cq, sq} {
		mr := p.recv.SGE.MR
		if err := p.cq.Close(); err != nil {
			a.t.Error(err)
		}
		if err := mr.PD.(*domain).dev.Free(mr); err != nil {
			a.t.Error(err)
		}
	}
}

// leftovers is everything that an exchange could leave behind.
type leftovers struct {
	fds, goroutines int
	nodes           [2]leftover
}

type leftover struct {
	conns, setups, lingers, ids, qps, dirty, events, memory, loopFDs, timers int
}

func (a *arena) left() leftovers {
	var l leftovers
	if !a.shared {
		l.fds, l.goroutines = fds(a.t), runtime.NumGoroutine()
	}
	for i, n := range []*node{a.client, a.server} {
		in, s := n.in, n.loop.Stats()
		l.nodes[i] = leftover{
			conns: in.conns, setups: in.setups.n, lingers: in.lingers.n, ids: len(in.ids), qps: len(in.dev.qps),
			dirty: len(in.dirty), events: len(in.events), memory: in.dev.pd.users, loopFDs: s.FDs, timers: s.Timers,
		}
	}
	return l
}

// clean waits until nothing is left, and discards delivered events.
func (a *arena) clean() {
	a.t.Helper()
	a.until("nothing left", func() bool {
		if a.steady.cq.heard < a.asked { // between two rounds nothing is dirty
			return false
		}
		l := a.left()
		// the testing package has some that end
		l.goroutines = max(l.goroutines, a.quiet.goroutines)
		return l == a.quiet
	})
	a.forget()
}

func (a *arena) forget() {
	for _, n := range []*node{a.client, a.server} {
		n.events, n.wcs = n.events[:0], n.wcs[:0]
	}
}

// settled waits until everything that is under way has ended.
func (a *arena) settled() {
	a.until("quiet", func() bool { return a.steady.cq.heard == a.asked && a.client.in.conns == 1 && a.server.in.conns == 1 })
	a.forget()
}
