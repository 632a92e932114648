package actor

import (
	"sync"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// piles is the answers to refused Sends that wait in mailboxes of ours, one of each kind in each:
// further refusals are added to it until its receiver takes it. So a flood does not fill the
// mailbox of whoever is told of it. Of other mailboxes nobody says when they have taken something:
// there each answer is a message of its own.
type piles struct {
	mu sync.Mutex
	in map[pile]*SendFailed
}

// pile is where refusals come together.
type pile struct {
	box  *mailbox.Mailbox
	kind error
}

// add adds to what waits there. Not ok: nothing does. Loop goroutine.
func (p *piles) add(at pile, sends, bytes int) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.in[at]
	if ok {
		e.Sends += sends
		e.Bytes += bytes
	}
	return ok
}

// begin makes e, which is about to be sent, the one that is added to. Loop goroutine.
func (p *piles) begin(at pile, e *SendFailed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil {
		p.in = make(map[pile]*SendFailed)
	}
	p.in[at] = e
	e.piles, e.pile = p, at
}
