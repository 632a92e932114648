package actor

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// Inspect reports every identifier, ordered by ID. It asks each loop and waits for the answers, at
// most for 100 ms. A loop with many answers over several turns, so that its connections need not
// wait: each report is of one moment, IDInfo.AsOf, but not all are of the same one. For a loop that
// is blocked longer Inspect reports the values that are known without asking; Loops reports the
// cause. Any goroutine may call it. On a loop's goroutine only that loop's identifiers are
// reported, because a loop must not wait for another. After Shutdown there are none.
func (rt *Runtime) Inspect() []IDInfo {
	if rt.over.Load() {
		return nil
	}
	if l := rt.currentLoop(); l != nil {
		return sortInfos(l.inspectAll())
	}
	asked := make([]<-chan struct{}, len(rt.loops))
	for i, l := range rt.loops {
		asked[i] = l.askIDs.askLoop(l.el, l.inspectInTurns)
	}
	var all []IDInfo
	for i, answered := range rt.awaitAnswers(asked) {
		switch l := rt.loops[i]; {
		case answered:
			all = append(all, l.askIDs.lastAnswer()...)
		case asked[i] != nil:
			all = append(all, l.known.allInfos(l.el.Name(), l.clock())...)
		}
	}
	return sortInfos(all)
}

// sortInfos returns a copy of infos, sorted by number: the loop's answer stays unchanged, because
// it is also kept in known. An IDInfo is large, so each is moved once.
func sortInfos(infos []IDInfo) []IDInfo {
	order := make([]*IDInfo, len(infos))
	for i := range infos {
		order[i] = &infos[i]
	}
	slices.SortFunc(order, func(a, b *IDInfo) int {
		if by := cmp.Compare(a.ID, b.ID); by != 0 {
			return by
		}
		return cmp.Compare(a.PID.Id, b.PID.Id)
	})
	sorted := make([]IDInfo, len(infos))
	for i, info := range order {
		sorted[i] = *info
	}
	return sorted
}

// inspectedAtOnce is how many identifiers a turn looks at. 10,000 of them take some 15 ms, for
// which other connections would have to wait.
const inspectedAtOnce = 512

// walk is one look at a loop's identifiers.
type walk struct {
	l     *loop
	left  []*ident           // to look at
	ids   []*mailbox.Mailbox // of the identifiers that it has looked at
	infos []IDInfo
}

func (l *loop) newWalk() *walk {
	w := &walk{l: l, left: make([]*ident, 0, len(l.ids)), ids: make([]*mailbox.Mailbox, 0, len(l.ids)), infos: make([]IDInfo, 0, len(l.ids))}
	for it := range l.ids {
		w.left = append(w.left, it)
	}
	return w
}

// inspectNext looks at up to n identifiers that are still there.
func (w *walk) inspectNext(n int) {
	n = min(n, len(w.left))
	for _, it := range w.left[:n] {
		if _, here := w.l.ids[it]; here {
			w.ids, w.infos = append(w.ids, it.box), append(w.infos, it.idInfo())
		}
	}
	if w.left = w.left[n:]; len(w.left) == 0 {
		w.l.known.storeAnswers(w.ids, w.infos)
	}
}

// inspectAll returns the loop's answer in one turn.
func (l *loop) inspectAll() []IDInfo {
	w := l.newWalk()
	w.inspectNext(len(w.left))
	return w.infos
}

// inspectInTurns calls answer when it has looked at all identifiers, in as many turns as it takes.
func (l *loop) inspectInTurns(answer func([]IDInfo)) {
	w := l.newWalk()
	var next func()
	next = func() {
		if w.inspectNext(inspectedAtOnce); len(w.left) == 0 {
			answer(w.infos)
			return
		}
		l.el.AfterFunc(0, next)
	}
	next()
}

// Held counts the messages that owners have received and not released: they are retained, or on
// their way to an actor that runs on goroutines. Their connections may have ended. Held asks the
// loops as Inspect does. Any goroutine may call it.
func (rt *Runtime) Held() (n int) {
	counts, _ := askLoops(rt, (*loop).Held)
	for _, c := range counts {
		n += c
	}
	return n
}

// Flight returns the contents of the flight recorders, one for each loop, in their order. It asks
// no loop, so a blocked one is no hindrance. It also works after Shutdown. Any goroutine may call
// it.
func (rt *Runtime) Flight() []Flight {
	all := make([]Flight, 0, len(rt.loops))
	for _, l := range rt.loops {
		all = append(all, dumpOf(l.el.Name(), "asked for", l.clock(), l.flight.Copy(math.MaxInt)))
	}
	return all
}
