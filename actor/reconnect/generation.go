package reconnect

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// dial begins a generation when it is our turn.
func (l *link) dial(ctx actor.Context) {
	l.phase = phaseQueueing
	l.stopTimer()
	ok, after := l.ticket.Enter(l.local.Now())
	if !ok {
		if after > 0 {
			l.timer = rdma.After(ctx, after, &turn{})
		}
		return
	}
	l.generation++
	l.phase, l.dialling = phaseDialling, true
	l.id = l.rt.CreateID(ctx.Self(), l.cfg.Options...)
	d := l.cfg.Dial
	if l.cfg.Peers != nil {
		l.number++
		d.PrivateData = l.hello(helloRequest).put(d.PrivateData)
	}
	ctx.Request(l.id, &d)
}

// dialled gives the Limiter its place back.
func (l *link) dialled() {
	if l.dialling {
		l.dialling = false
		l.ticket.Done()
	}
}

// up: the generation has a connection. Messages go in a turn of their own, because the identifier is still telling of it.
func (l *link) up(ctx actor.Context, ev *rdma.Established) {
	l.dialled()
	accepted := l.phase == phaseAccepting
	if l.cfg.Peers != nil {
		if err := l.meet(ev); err != nil {
			l.down(ctx, err, nil)
			return
		}
	}
	line, ok := l.local.Line(ev.ID)
	if !ok {
		l.finish(ctx, fmt.Errorf("%v: no data path on this loop: %w", ev, unix.EINVAL))
		return
	}
	l.phase, l.upSince, l.failed, l.failure, l.closeSent = phaseUp, l.local.Now(), 0, nil, false
	l.tell(&Up{Generation: l.generation, Accepted: accepted, Established: ev})
	for _, m := range l.out.begin(line, ev.MaxMessage) {
		l.refuse(m, tooLarge(m.send, ev.MaxMessage))
	}
	ctx.Send(ctx.Self(), &flush{})
}

// lost notes since when there is no connection, and that the last one was good if it was.
func (l *link) lost(ctx actor.Context) {
	l.downSince = l.local.Now()
	if l.phase == phaseUp && l.downSince.Sub(l.upSince) >= l.cfg.Backoff.Stable {
		l.pause.reset()
	}
	if l.cfg.GiveUp > 0 {
		if l.patience != nil {
			l.patience()
		}
		l.patience = rdma.After(ctx, l.cfg.GiveUp, &tooLong{l.downSince})
	}
}

// gaveUp is why it ends when GiveUp is over: also of one that has not tried since it was up.
func (l *link) gaveUp() error {
	if l.failure == nil {
		return fmt.Errorf("%w after %v, before another attempt", ErrGaveUp, l.cfg.GiveUp)
	}
	return fmt.Errorf("%w after %v: %w", ErrGaveUp, l.cfg.GiveUp, l.failure)
}

// down ends the generation, and decides what follows. f is why it was never up.
func (l *link) down(ctx actor.Context, err error, f rdma.Failure) {
	now := l.local.Now()
	if l.phase == phaseUp {
		l.lost(ctx)
	} else {
		l.failure = err
	}
	reason := l.reason(f)
	switch {
	case reason != nil: // the peer is there
		err, f = fmt.Errorf("%w: %w", reason, err), nil
	case l.phase != phaseUp:
		l.failed++
	}
	switch {
	case l.closing && (!l.redial || !l.out.again(l.cfg.FailFast)):
		l.finish(ctx, err)
		return
	case f != nil && l.cfg.Permanent(f):
		l.finish(ctx, fmt.Errorf("%w: %w", ErrPermanent, err))
		return
	case l.cfg.Attempts > 0 && l.failed >= l.cfg.Attempts:
		l.finish(ctx, fmt.Errorf("%w after %d attempts: %w", ErrGaveUp, l.failed, err))
		return
	}
	wait := l.pause.next()
	l.over(ctx, err, now.Add(wait), false)
	l.timer = rdma.After(ctx, wait, &retry{l.generation})
}

// over ends the generation: nothing of its identifier is heard any more. last: no other follows.
func (l *link) over(ctx actor.Context, err error, next time.Time, last bool) {
	l.dialled()
	if l.id != nil {
		ctx.Send(l.id, &rdma.DestroyID{}) // it may be on its way out by itself, which is as good
		l.id = nil
	}
	d := &Down{Generation: l.generation, WasUp: l.phase == phaseUp, Err: err, NextTry: next}
	if d.WasUp || last {
		d.Fates, d.Counts = l.out.end(l.cfg.FailFast || last)
	}
	d.Waiting = l.out.len()
	l.phase = phasePausing
	l.tell(d)
}

// rest is neither pausing nor waiting for a turn.
func (l *link) rest() {
	l.stopTimer()
	l.ticket.Leave()
}

func (l *link) stopTimer() {
	if l.timer != nil {
		l.timer()
		l.timer = nil
	}
}
