package main

import (
	"sync"
	"sync/atomic"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// party is a client of the server, with its counts.
type party struct {
	name   string
	id     atomic.Uint64 // the server's identifier for it; 0: not connected
	got    atomic.Uint64 // messages
	missed atomic.Uint64 // messages that the server could not queue for it
	last   atomic.Int64  // time of the last message, in nanoseconds
}

// countMessage counts a message.
func (p *party) countMessage() {
	p.got.Add(1)
	p.last.Store(time.Now().UnixNano())
}

// parties are all clients except the crowd.
type parties struct {
	all []*party

	mu     sync.Mutex
	before []uint64 // counts at the last reading
	at     time.Time
}

func newParties(names []string) *parties {
	p := &parties{before: make([]uint64, len(names)), at: time.Now()}
	for _, name := range names {
		one := &party{name: name}
		one.last.Store(p.at.UnixNano())
		p.all = append(p.all, one)
	}
	return p
}

// find returns the party of that name; nil: none.
func (p *parties) find(name string) *party {
	for _, one := range p.all {
		if one.name == name {
			return one
		}
	}
	return nil
}

func (p *parties) clientNames() (names []string) {
	for _, one := range p.all {
		names = append(names, one.name)
	}
	return names
}

// countMissing returns how many are not connected.
func (p *parties) countMissing() (n int) {
	for _, one := range p.all {
		if one.id.Load() == 0 {
			n++
		}
	}
	return n
}

// partyRow is a client's row on the page.
type partyRow struct {
	Identifier      rdma.Handle
	Client          string
	MessagesASecond float64       // since the last reading
	Silent          time.Duration // time since the last message
	GotMessages     uint64
	MissedMessages  uint64
}

// pageRows returns the page's rows.
func (p *parties) pageRows() []partyRow {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	took := now.Sub(p.at).Seconds()
	p.at = now
	rows := make([]partyRow, len(p.all))
	for i, one := range p.all {
		got := one.got.Load()
		rows[i] = partyRow{
			Identifier: rdma.Handle(one.id.Load()), Client: one.name, MessagesASecond: float64(got-p.before[i]) / took,
			Silent: max(now.Sub(time.Unix(0, one.last.Load())), 0), GotMessages: got, MissedMessages: one.missed.Load(),
		}
		p.before[i] = got
	}
	return rows
}
