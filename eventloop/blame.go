package eventloop

// Blame says that the callback that runs works for r from now on, until another one runs: the
// watchdog names r instead. nil: for itself. It returns whom it would have named, to be blamed
// again afterwards. What r points to must not change any more. Loop goroutine. To blame the same
// one again costs next to nothing.
func (l *Loop) Blame(r *Runnable) (was *Runnable) {
	if was = l.blamed.Load(); was != r {
		l.blamed.Store(r)
	}
	return was
}
