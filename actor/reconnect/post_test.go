package reconnect_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// poster is an owner that keeps its messages itself, and posts only those that can be sent
// immediately.
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
		if errors.Is(err, rdma.ErrQueueFull) {
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

// An owner that posts only messages that can be sent immediately needs no queue here. It finds no
// room while it receives Up, and when the peer has none; Writable follows in both cases. Each
// message has its fate.
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

// Post in the middle of a delivery finds no room, but immediately afterwards. It keeps its place
// behind messages that wait, and its fate is reported without any other event.
func TestPostInOrder(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve(rdma.IDConfig{Credits: 2})
		var up *reconnect.Up
		var answer *reconnect.Send
		var fates []reconnect.Fate
		inside, outside := error(nil), errors.New("never")
		owner := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *reconnect.Up:
				up = m
			case *rdma.Received:
				answer = reconnect.NewSend(1, []byte("answer"))
				inside = up.Post(answer)
			case *rdma.Writable:
				if answer != nil {
					outside = up.Post(answer)
				}
			case *reconnect.Settled:
				fates = append(fates, m.Fates...)
			case string:
				for _, text := range []string{"a", "b", "c"} { // the peer takes two
					ctx.Send(r.link, reconnect.NewSend(2, []byte(text)))
				}
				rdma.After(ctx, time.Millisecond, 1)
			case int:
				answer = reconnect.NewSend(3, []byte("d"))
				inside = up.Post(answer)
			}
		}, r.Runtime().OnLoop()))
		defer r.System().Root.Stop(owner)
		r.link = reconnect.Spawn(r.Runtime(), owner, reconnect.Config{Dial: rdma.Dial{Addr: there}})
		actortest.Next[*rdma.ConnectRequest](r.server)
		conn := r.server.Sender()
		r.server.Request(conn, &rdma.Accept{})
		actortest.Next[*rdma.Established](r.server)
		r.server.Request(conn, rdma.NewSend([]byte("question")))
		r.hears("answer")
		r.released()
		r.Wait()
		if !errors.Is(inside, rdma.ErrQueueFull) || outside != nil {
			r.t.Errorf("in the middle of a delivery: %v; afterwards: %v", inside, outside)
		}
		r.Advance(time.Second)
		if len(fates) != 1 || fates[0] != (reconnect.Fate{Tag: 1, Outcome: reconnect.Delivered}) {
			r.t.Errorf("fates: %+v", fates)
		}
		answer, inside, outside = nil, nil, errors.New("never")
		r.System().Root.Send(owner, "more")
		r.Advance(time.Second)
		if !errors.Is(inside, rdma.ErrQueueFull) {
			r.t.Errorf("behind a message that waits: %v", inside)
		}
		r.hears("a", "b", "c", "d")
		r.released()
		if outside != nil {
			r.t.Errorf("when nothing waits: %v", outside)
		}
	})
}

// Post is refused for a message that cannot go, and for an owner that is not on the loop.
func TestPostRefused(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve(rdma.IDConfig{MaxMessage: 1024})
		var up *reconnect.Up
		errs := make(map[string]error)
		owner := func(where actor.PropsOption) *actor.PID {
			return r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *reconnect.Up:
					up = m
					rdma.After(ctx, time.Millisecond, "now")
				case string:
					errs["too large"] = up.Post(reconnect.NewSend(1, make([]byte, 1025)))
					errs["by hand"] = up.Post(&reconnect.Send{})
					s := reconnect.NewSend(1, []byte("twice"))
					again := *s
					errs["once"] = up.Post(s)
					errs["twice"] = up.Post(&again)
					ctx.Send(r.link, &rdma.Close{})
					rdma.After(ctx, 0, 1)
				case int:
					errs["closing"] = up.Post(reconnect.NewSend(1, nil))
				}
			}, where))
		}
		connect := func(owner *actor.PID) (conn *actor.PID) {
			clear(errs)
			r.link = reconnect.Spawn(r.Runtime(), owner, reconnect.Config{Dial: rdma.Dial{Addr: there}})
			actortest.Next[*rdma.ConnectRequest](r.server)
			conn = r.server.Sender()
			r.server.Request(conn, &rdma.Accept{})
			actortest.Next[*rdma.Established](r.server)
			r.Advance(time.Second)
			return conn
		}
		on := owner(r.Runtime().OnLoop())
		connect(on)
		r.hears("twice")
		want := map[string]error{"too large": rdma.ErrTooLarge, "by hand": unix.EINVAL, "once": nil, "twice": unix.EINVAL, "closing": reconnect.ErrClosing}
		for what, err := range want {
			if !errors.Is(errs[what], err) {
				r.t.Errorf("%s: %v", what, errs[what])
			}
		}
		r.ended()
		off := owner(r.Runtime().OffLoop())
		connect(off)
		for what, err := range errs {
			if !errors.Is(err, reconnect.ErrDown) {
				r.t.Errorf("an owner off the loop: %s: %v", what, err)
			}
		}
		r.ended()
		r.System().Root.Stop(on)
		r.System().Root.Stop(off)
	})
}

// Quiet messages are only counted. Their owner sees how many of them the peer is not known to have
// consumed.
func TestPostQuiet(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve(rdma.IDConfig{Credits: 4})
		var up *reconnect.Up
		var down *reconnect.Down
		next, last, most := 0, 40, 0
		owner := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *reconnect.Up:
				up = m
				_ = up.Post(reconnect.NewSend(0, nil)) // no room: Writable comes
				if n, ok := up.Unsettled(); n != 0 || !ok {
					t.Errorf("%d unsettled at the beginning, %v", n, ok)
				}
			case *rdma.Writable:
				for ; next < last; next++ {
					s := reconnect.NewSend(7, fmt.Append(nil, next))
					s.Quiet = true
					if up.Post(s) != nil {
						return
					}
					n, _ := up.Unsettled()
					most = max(most, n)
				}
			case *reconnect.Settled:
				t.Errorf("%+v", m)
			case *reconnect.Down:
				down = m
			}
		}, r.Runtime().OnLoop()))
		defer func() { _ = r.System().Root.StopFuture(owner).Wait() }()
		r.link = reconnect.Spawn(r.Runtime(), owner, reconnect.Config{Dial: rdma.Dial{Addr: there}, FailFast: true})
		actortest.Next[*rdma.ConnectRequest](r.server)
		conn := r.server.Sender()
		r.server.Request(conn, &rdma.Accept{})
		actortest.Next[*rdma.Established](r.server)
		for n := range 40 {
			r.hears(fmt.Sprint(n))
		}
		r.released()
		r.Wait()
		if n, ok := up.Unsettled(); most == 0 || most > 4 || n > 4 || !ok {
			t.Errorf("at most %d unsettled, %d in the end, %v", most, n, ok)
		}
		r.server.Send(conn, &rdma.Close{})
		r.Advance(time.Second)
		n, ok := up.Unsettled()
		if len(down.Fates) != 0 || down.Counts != (reconnect.Counts{Delivered: 40}) || n != 0 || ok {
			t.Errorf("%+v, %d unsettled, %v", down, n, ok)
		}
		r.ended() // the next generation counts from zero
		actortest.Next[*rdma.ConnectRequest](r.server)
		r.server.Request(r.server.Sender(), &rdma.Accept{})
		actortest.Next[*rdma.Established](r.server)
		r.Wait()
		if up.Generation == down.Generation {
			t.Error("there is no next generation")
		}
	})
}
