package eventloop

// SetYield replaces runtime.Gosched, so that a test can count how often the loop yields. Before
// the loop runs.
func (l *Loop) SetYield(fn func()) { l.yield = fn }

// GoroutineID returns the id that OnLoop compares.
func GoroutineID() uint64 { return goroutineID() }

// WatchdogSleeps reports whether the watchdog waits for the loop to have something to do.
func (l *Loop) WatchdogSleeps() bool { return l.watchdog.asleep.Load() }
