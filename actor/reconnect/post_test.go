package reconnect_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// poster is an owner that keeps its messages itself, and posts what goes out at once.
type poster struct {
	r     *rig
	pid   *actor.PID
	up    *reconnect.Up
	next  uint64   // to be posted
	last  uint64   // of all
	full  int      // it found no room
	fates []string // in order
	errs  []error  // of Post
	s     *reconnect.Send
}

type post struct{ last uint64 }

func (p *poster) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *reconnect.Up:
		p.up = m
		p.post() // too early
	case *reconnect.Down:
		p.settled(m.Fates)
	case *reconnect.Settled:
		p.settled(m.Fates)
	case *rdma.Writable:
		p.post()
	case *post:
		p.last = m.last
		p.post()
	}
}

func (p *poster) settled(fates []reconnect.Fate) {
	for _, f := range fates {
		p.fates = append(p.fates, fmt.Sprintf("%d %v %v", f.Tag, f.Outcome, f.Again))
	}
}

func (p *poster) post() {
	for p.next < p.last {
		if p.s == nil {
			p.s = reconnect.NewSend(p.next, fmt.Append(nil, p.next))
		}
		err := p.up.Post(p.s)
		if errors.Is(err, reconnect.ErrQueueFull) {
			p.full++
			return
		}
		p.errs = append(p.errs, err)
		p.s = nil
		p.next++
	}
}

func newPoster(r *rig, cfg reconnect.Config) *poster {
	p := &poster{r: r}
	p.pid = r.System().Root.Spawn(actor.PropsFromFunc(p.receive, r.Runtime().OnLoop()))
	r.t.Cleanup(func() { _ = r.System().Root.StopFuture(p.pid).Wait() })
	cfg.Dial.Addr = there
	r.link = reconnect.Spawn(r.Runtime(), p.pid, cfg)
	return p
}

// An owner that posts what goes out at once needs no queue here. It finds no room while it
// receives Up, and when the peer has none; Writable comes in both cases. Each message has its fate.
func TestPost(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve(rdma.IDConfig{Credits: 4})
		p := newPoster(r, reconnect.Config{})
		p.last = 2 // Up finds them
		actortest.Next[*rdma.ConnectRequest](r.server)
		conn := r.server.Sender()
		r.server.Request(conn, &rdma.Accept{})
		actortest.Next[*rdma.Established](r.server)
		r.hears("0", "1")
		if p.full != 1 {
			r.t.Errorf("during Up it found room")
		}
		r.System().Root.Send(p.pid, &post{40})
		for n := 2; n < 40; n++ {
			r.hears(fmt.Sprint(n))
		}
		r.released()
		r.Wait()
		if p.full < 2 || p.next != 40 {
			r.t.Errorf("posted %d, and found no room %d times", p.next, p.full)
		}
		for _, err := range p.errs {
			if err != nil {
				r.t.Error(err)
			}
		}
		r.server.Send(conn, &rdma.Close{})
		r.Advance(time.Second)
		if len(p.fates) != 40 {
			r.t.Fatalf("%d fates of 40: %v", len(p.fates), p.fates)
		}
		for n, f := range p.fates {
			if f != fmt.Sprintf("%d delivered false", n) {
				r.t.Errorf("fate %d is %q", n, f)
			}
		}
		p.errs = nil
		r.System().Root.Send(p.pid, &post{41})
		r.Wait()
		if len(p.errs) != 1 || !errors.Is(p.errs[0], reconnect.ErrDown) {
			r.t.Errorf("Post after the generation's end: %v", p.errs)
		}
	})
}
