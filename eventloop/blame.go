package eventloop

// Blame says that the callback that runs works for r from now on: the watchdog names r instead. It returns whom it would have named, to be
// blamed again afterwards. What r points to must not change any more. Loop goroutine.
func (l *Loop) Blame(r *Runnable) (was *Runnable) {
	was = l.holder.Load()
	l.holder.Store(r)
	return was
}
