package actor

import (
	"runtime"
	"testing"
)

// BenchmarkIdle measures what an idle connection holds of Go's heap and of stacks, both ends
// together: B/pair. b.N counts connections.
func BenchmarkIdle(b *testing.B) {
	sys := testSystem(b)
	rt := openIWARP(b, sys)
	server, client := newProbe(b, sys, rt.OnLoop(), nil), newProbe(b, sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, "127.0.0.1:0")
	open := func() {
		client.send(rt.CreateID(client.pid), &Dial{Addr: at})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
	}
	for range 100 { // what the first ones allocate for all
		open()
	}
	b.Cleanup(func() { // the shutdown sends more messages than a probe has room for
		for _, p := range []*probe{server, client} {
			go p.discardUntil(rt.shutdown.done)
		}
	})
	before := inUse()
	b.ResetTimer()
	for range b.N {
		open()
	}
	b.StopTimer()
	b.ReportMetric(float64(inUse()-before)/float64(b.N), "B/pair")
}

// discardUntil discards messages until done is closed.
func (p *probe) discardUntil(done <-chan struct{}) {
	for {
		select {
		case <-p.got:
		case <-done:
			return
		}
	}
}

// inUse returns the size of the live heap and of the goroutines' stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}
