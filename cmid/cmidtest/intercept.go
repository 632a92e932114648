package cmidtest

import "sync"

// tap is somebody on the path.
type tap struct {
	mu sync.Mutex
	fn func(m Message, b []byte) []byte
}

// Intercept puts somebody in the middle of every link, who reads and changes what programs send: fn
// gets the bytes of each Send and of each answer to a Read, and the private data of each MsgREQ,
// MsgREP and MsgREJ. What it returns arrives in their place; after nil the message is lost. fn may
// keep and change b. Calls come one at a time, from the goroutines of the loops that send. A nil fn
// ends it.
func (f *Fabric) Intercept(fn func(m Message, b []byte) []byte) {
	f.tap.mu.Lock()
	defer f.tap.mu.Unlock()
	f.tap.fn = fn
}

// intercepted has whoever is in the middle see p. It reports whether p is lost.
func (f *Fabric) intercepted(p *packet) (lost bool) {
	f.tap.mu.Lock()
	defer f.tap.mu.Unlock()
	if f.tap.fn == nil {
		return false
	}
	switch p.kind {
	case MsgSend, MsgReadResponse:
		b := f.tap.fn(p.kind, append([]byte{}, p.data.b...))
		p.data.b = append(p.data.b[:0], b...)
		return b == nil
	case MsgREQ, MsgREP, MsgREJ:
		m := *p.cm
		m.private = f.tap.fn(p.kind, append([]byte{}, m.private...))
		p.cm = &m
		return m.private == nil
	}
	return false
}
