package memory

import "testing"

// giver is a claimant whose owner's code returns another's memory when it is granted memory.
type giver struct {
	claim
	of *claim
}

func (g *giver) Grant() {
	g.take()
	g.of.back()
}

// Memory that is returned during a check is also for claimants that were checked before.
func TestMemoryThatComesBackMeanwhile(t *testing.T) {
	const all = 1 << 20
	b := paperBudget(t, all)
	other, first := b.ask(all/16), b.ask(all/2)
	next := b.ask(all / 2)
	last := &giver{claim{b: b, n: all / 16}, first}
	if b.Admits(last) {
		t.Fatal("there is nobody before it")
	}
	other.back()
	for range 3 {
		if err := b.el.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	if !last.granted || !next.granted {
		t.Errorf("the small one has got memory: %t; the large one, which it has made room for: %t", last.granted, next.granted)
	}
}

// counted is a claimant that notes how often it was looked at.
type counted struct {
	claim
	looks int
}

func (c *counted) Claim() (want, held int) { c.looks++; return c.n, 0 }

// Messages that come and go, beside large ones that wait for more than there is, do not have these
// looked at for each. When there is more than ever since they were looked at, they are.
func TestWaitingCostsNothing(t *testing.T) {
	const all, one = 1 << 20, 1 << 12
	b := paperBudget(t, all)
	held := 0
	b.Retained = func() int { return held }
	turn := func() {
		if err := b.el.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	held = all / 8
	first := b.ask(all / 4)
	c := &counted{claim: claim{b: b, n: all / 2}}
	if b.Admits(c) {
		t.Fatal("there is too much memory")
	}
	for range 1000 {
		held += one
		held -= one
		b.Fewer()
		turn()
	}
	if c.looks > 10 {
		t.Errorf("it was looked at %d times for nothing", c.looks)
	}
	c.n, held = all/2-all/8, 0
	b.Fewer()
	if turn(); !c.granted {
		t.Error("it waits although there is memory")
	}
	first.back()
}

// turn runs one turn of the loop.
func (b *Budget) turn(t *testing.T) {
	t.Helper()
	if err := b.el.Turn(); err != nil {
		t.Fatal(err)
	}
}

// A claimant that leaves the queue no longer blocks those behind it, even if no memory is released.
func TestLeavingUnblocksOthers(t *testing.T) {
	const all = 1 << 20
	b := paperBudget(t, all)
	b.ask(all / 2)
	large := b.ask(all / 2)
	next := b.ask(all / 4)
	b.turn(t)
	if large.granted || next.granted {
		t.Fatal("there is nothing to wait for")
	}
	b.Leave(large)
	b.turn(t)
	if !next.granted {
		t.Error("a claimant still waits behind one that has left")
	}
	if _, waiting := b.InUse(); waiting != 0 {
		t.Errorf("%d claimants wait", waiting)
	}
}

// Requests are served in order: a later one gets no memory that an earlier one of its class waits
// for, even if there is enough for the later one.
func TestLatecomersDoNotOvertake(t *testing.T) {
	const all = 1 << 20
	b := paperBudget(t, all)
	b.ask(all / 2)
	large := b.ask(all / 2)
	if b.ask(all / 4).granted {
		t.Error("a later request overtakes one that waits")
	}
	if large.granted {
		t.Error("there is more memory than there is")
	}
}

// asker is a claimant whose owner asks for the same for another one when it is granted memory.
type asker struct {
	claim
	other *claim
}

func (a *asker) Grant() {
	a.take()
	a.other = a.b.ask(a.n)
}

// A request that arrives while the queue is served waits behind those that have not been looked at
// yet.
func TestRequestsWhileTheQueueIsServed(t *testing.T) {
	const all = 1 << 20
	b := paperBudget(t, all)
	first := b.ask(all / 2)
	front := &asker{claim: claim{b: b, n: 3 * all / 8}}
	if b.Admits(front) {
		t.Fatal("there is nothing to wait for")
	}
	next := b.ask(3 * all / 8)
	first.back()
	b.turn(t)
	if !front.granted || !next.granted || front.other.granted {
		t.Errorf("granted: the first that waits %t, the next %t, the one that came last %t; want all but the last",
			front.granted, next.granted, front.other.granted)
	}
}
