package actor

func (l *loop) currentFigures() loopFigures {
	return loopFigures{l.el.Now(), l.Pools(), l.DeviceInfos(), l.sumTotals()}
}

// Loops reports on the loops, in their order. It asks them for the values that only they know, and
// waits for at most 100 ms; a loop that is blocked longer is reported as it was (LoopInfo.AsOf).
// After Shutdown they are reported as they were at their end. Any goroutine may call it. On a
// loop's goroutine no other loop is asked.
func (rt *Runtime) Loops() []LoopInfo {
	infos := make([]LoopInfo, len(rt.loops))
	figures := rt.askFigures()
	for i, l := range rt.loops {
		f := figures[i]
		infos[i] = LoopInfo{
			Name: l.el.Name(), Identifiers: int(l.assigned.Load()), Arrived: l.arrived.Load(), Strangers: l.ch.Strangers(),
			Stats: l.el.Stats(), AsOf: f.asOf, Memory: f.memory, Devices: f.devices,
			LoopTotals: f.totals,
		}
		if rt.over.Load() {
			infos[i].States, infos[i].Waiting, infos[i].Listeners = LoopTotals{}.States, 0, nil
		}
		if d := infos[i].Turn; d > answerIn {
			infos[i].Blocked = &Blocked{d, l.el.Holder()}
		}
	}
	return infos
}

func (rt *Runtime) askFigures() []loopFigures {
	figures := make([]loopFigures, len(rt.loops))
	here := rt.currentLoop()
	asked := make([]<-chan struct{}, len(rt.loops))
	for i, l := range rt.loops {
		if here == nil && !rt.over.Load() {
			asked[i] = l.askRest.askLoop(l.el, func(answer func(loopFigures)) { answer(l.currentFigures()) })
		}
	}
	if here == nil {
		rt.awaitAnswers(asked)
	}
	for i, l := range rt.loops {
		if l == here {
			figures[i] = l.currentFigures()
		} else {
			figures[i] = l.askRest.lastAnswer()
		}
	}
	return figures
}
