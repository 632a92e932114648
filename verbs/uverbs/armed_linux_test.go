package uverbs

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
)

// reporting is an adapter with events of completion queues.
type reporting struct {
	hca.Adapter
	events []uint64
	reads  int
}

func (r *reporting) NextCompletion() (uint64, error) {
	r.reads++
	if len(r.events) == 0 {
		return 0, unix.EAGAIN
	}
	e := r.events[0]
	r.events = r.events[1:]
	return e, nil
}

// TestLastEventIsNotReadBehind: as many events are read as there are armed queues. One that was
// destroyed counts no longer.
func TestLastEventIsNotReadBehind(t *testing.T) {
	f := newFake(t)
	hw := &reporting{}
	f.d.hw = hw
	p := f.cq.parts[0]
	p.event = f.d.addHandle(p)
	p.armed = false
	other := &cqPart{q: f.cq, ring: noCompletions{}}
	other.event = f.d.addHandle(other)
	for _, part := range []*cqPart{p, other} {
		part.setArmed(true, false)
		part.setArmed(false, true)
	}
	hw.events = []uint64{p.event, other.event}
	compEvents{f.d}.Ready(0)
	if hw.reads != 2 || p.quietly || other.quietly || f.d.armed != 0 {
		t.Errorf("%d reads for 2 events, %d queues still armed", hw.reads, f.d.armed)
	}
	p.setArmed(true, false)
	other.setArmed(true, false)
	hw.events, hw.reads = []uint64{p.event}, 0
	compEvents{f.d}.Ready(0)
	if hw.reads != 2 || f.d.armed != 1 {
		t.Errorf("%d reads, want one that finds nothing, for the queue that is armed: %d", hw.reads, f.d.armed)
	}
	f.d.lost = unix.ENODEV
	if _ = other.destroy(); f.d.armed != 0 {
		t.Errorf("%d armed queues after the destruction", f.d.armed)
	}
}
