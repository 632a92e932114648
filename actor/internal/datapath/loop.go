package datapath

// Held counts the messages that owners have and have not given back.
func (l *Loop) Held() (n int) {
	for _, d := range l.Devices {
		n += d.held()
	}
	return n
}

// Full reports whether a further connection's messages would take the memory of those there are.
func (l *Loop) Full() bool { return l.Shares.full() }

// CrowdedFor reports whether there are so many connections that one with receives of n bytes would
// be too much.
func (l *Loop) CrowdedFor(n int) bool { return l.Shares.crowded() && n > eagerCrowded }

// Close frees what connections share.
func (l *Loop) Close() {
	for _, d := range l.Devices {
		d.close()
	}
	l.Devices = nil
}
