package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/securityflags"
	"github.com/rdmactor/rdmactor/lab/chat/console"
	"github.com/rdmactor/rdmactor/lab/chat/room"
)

const (
	dialFor     = 5 * time.Second // also the limit for the server's answer to the hello
	redialFirst = 250 * time.Millisecond
	redialMost  = 10 * time.Second
	closeFor    = 5 * time.Second
	// leaveFor limits how long typed lines are still sent after the user has left.
	leaveFor = 2 * time.Second
)

// client is the actor that keeps a connection to the server. It connects and talks, and reconnects
// when the server goes away. It may block, because the console does, so it does not run on the
// loop.
type client struct {
	rt     *rdma.Runtime
	server string
	hello  hello
	con    console.Console
	in     *console.Input
	ended  chan<- error // receives the outcome, once

	id      *actor.PID // the identifier of the current attempt
	up      bool       // connected and admitted
	been    bool       // was admitted before
	going   bool       // the current attempt is being ended
	quits   bool       // the user is leaving
	now     bool       // the user does not wait long
	failed  error      // the error that made the client leave
	backoff time.Duration
	waiting []room.Line // not yet sent
	sent    []room.Line // handed to the connection; Sent and SendFailed arrive in this order
	reason  error       // why the attempt failed
	shown   string      // the last reason shown
}

// The messages to the client, from the program and from itself.
type (
	typed struct{ text string }
	// quit leaves: at the end of a pipe after everything is sent, at a person's request soon.
	quit struct {
		now bool
		why error // nil: requested by the user
	}
	redial struct{}
	// giveUp ends an attempt that has waited too long for the server: for admission, or for the
	// lines of a leaving user to be sent.
	giveUp struct {
		id *actor.PID
		up bool
	}
)

// Receive handles the user's lines and the connection's events.
func (c *client) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started, *redial:
		c.dial(ctx)
	case *typed:
		c.typed(ctx, m.text)
	case *quit:
		c.quit(ctx, m)
	case *giveUp:
		c.giveUp(ctx, m)
	case *rdma.Established:
		ctx.Request(c.id, rdma.NewSend(c.hello.encode()))
		rdma.After(ctx, dialFor, &giveUp{c.id, false})
	case *rdma.Received:
		c.received(ctx, m)
	case *rdma.Sent:
		c.sent = c.sent[1:]
		c.in.Done()
		c.finish(ctx)
	case *rdma.SendFailed:
		c.sendFailed(ctx, m)
	case *rdma.Writable:
		c.flush(ctx)
	case *rdma.Rejected:
		c.reason = why(m)
		if len(m.PrivateData) > 0 {
			c.reason = fmt.Errorf("%s says: %s", c.server, room.Clean(string(m.PrivateData)))
		}
	case *rdma.Disconnected:
		if m.Err != nil {
			c.reason = fmt.Errorf("%s is lost: %w", c.server, m.Err)
		}
	case *rdma.Closed:
		c.closed(ctx, m)
	case rdma.Failure:
		if c.reason == nil {
			c.reason = why(m)
		}
		c.destroy(ctx) // some failures leave the identifier usable, but each attempt uses a new one
	}
}

// why returns a failure in a few words. The full error is for --debug.
func why(f rdma.Failure) error {
	if _, ok := errors.AsType[*rdma.HandshakeError](f); ok && !errors.Is(f, unix.EAGAIN) {
		return fmt.Errorf("%s: do both sides have the same --key, or certificates of the same --tls-ca?", rdma.Brief(f))
	}
	if errors.Is(f, rdma.ErrNoSecurity) {
		return securityflags.Explain(f)
	}
	return errors.New(rdma.Brief(f))
}

func (c *client) dial(ctx actor.Context) {
	if c.quits {
		return
	}
	c.reason, c.going = nil, false
	c.id = c.rt.CreateID(ctx.Self())
	ctx.Request(c.id, &rdma.Dial{Addr: c.server, Timeout: dialFor, PrivateData: []byte(version)})
}

func (c *client) giveUp(ctx actor.Context, m *giveUp) {
	if c.id == nil || !c.id.Equal(m.id) || c.up != m.up {
		return
	}
	c.reason = fmt.Errorf("%s does not answer", c.server)
	if c.up {
		c.reason = fmt.Errorf("%s does not take what is sent", c.server)
	}
	c.destroy(ctx)
}

// destroy ends the present attempt, once. Closed follows.
func (c *client) destroy(ctx actor.Context) {
	if c.id != nil && !c.going {
		c.going = true
		ctx.Request(c.id, &rdma.DestroyID{})
	}
}

// welcome handles the server's answer to the hello.
func (c *client) welcome(ctx actor.Context) {
	if c.been {
		c.con.Status("connected again")
	} else {
		c.con.Status("connected to " + c.server)
	}
	c.up, c.been, c.backoff, c.shown = true, true, 0, ""
	if c.quits {
		c.leaveSoon(ctx)
	}
	c.flush(ctx)
	c.finish(ctx)
}

// typed handles a line that the user typed.
func (c *client) typed(ctx actor.Context, text string) {
	l, local := room.Parse(text)
	if local != "" {
		c.con.Status(local)
	}
	switch {
	case l.Type == "" || c.quits:
		c.in.Done()
		return
	case !c.up && c.been && (l.Type == "nick" || l.Type == "room"):
		// perhaps the reason why the server does not admit us again
		c.rename(l)
		c.in.Done()
		return
	case !c.up && c.been && len(c.waiting) == 0:
		c.con.Status("not connected: that waits until the server is back")
	}
	c.waiting = append(c.waiting, l)
	c.flush(ctx)
}

// rename changes the name or room that the next dial asks for.
func (c *client) rename(l room.Line) {
	what, field, limit := "nickname", &c.hello.nick, room.MaxNick
	if l.Type == "room" {
		what, field, limit = "room", &c.hello.room, room.MaxRoom
	}
	name, err := room.CheckName(what, l.Text, limit)
	if err != nil {
		c.con.Status(err.Error())
		return
	}
	*field = name
	c.con.Status(fmt.Sprintf("the %s will be %s", what, name))
}

// flush hands the waiting lines to the connection.
func (c *client) flush(ctx actor.Context) {
	if !c.up {
		return
	}
	for _, l := range c.waiting {
		send := rdma.NewSend(l.Encode())
		send.Notify = true
		ctx.Request(c.id, send)
		c.sent = append(c.sent, l)
	}
	c.waiting = nil
}

// sendFailed keeps the lines for the next connection, but not a hello.
func (c *client) sendFailed(ctx actor.Context, m *rdma.SendFailed) {
	n := min(m.Sends, len(c.sent))
	l := c.sent[:n]
	c.sent = c.sent[n:]
	if errors.Is(m, rdma.ErrTooLarge) {
		c.con.Status("that line is too long")
		c.in.Done()
		c.finish(ctx)
		return
	}
	c.waiting = append(c.waiting, l...)
}

// received shows a line.
func (c *client) received(ctx actor.Context, m *rdma.Received) {
	l, err := room.Decode(m.Data)
	if err != nil {
		c.con.Status(err.Error())
		return
	}
	switch l.Type {
	case "say", "private", "notice":
		c.print(ctx, l.Show())
	case "you": // keep a new name or room for the next dial
		c.hello = hello{nick: l.From, room: l.Room}
		if !c.up {
			c.welcome(ctx)
		}
	case "refused":
		c.reason = fmt.Errorf("%s says: %s", c.server, l.Text)
	}
}

// print shows a line of the chat. If that fails, the user can no longer see the chat, and the
// client leaves.
func (c *client) print(ctx actor.Context, s string) {
	if err := c.con.Print(s); err != nil {
		c.quit(ctx, &quit{now: true, why: err})
	}
}

// closed ends the program or tries again.
func (c *client) closed(ctx actor.Context, m *rdma.Closed) {
	c.up, c.id = false, nil
	switch {
	case c.reason != nil:
	case m.Err != nil:
		c.reason = m.Err
	default:
		c.reason = fmt.Errorf("%s has closed the connection", c.server)
	}
	if m.Unknown > 0 {
		lost := fmt.Errorf("%s may not have arrived", room.Plural(int(m.Unknown), "line"))
		if c.quits {
			c.failed = errors.Join(c.failed, lost)
		} else {
			c.con.Status(lost.Error())
		}
	}
	switch {
	case c.quits && (c.been || c.now):
		c.end(c.unsent())
	case !c.been:
		c.end(c.reason)
	default:
		if why := fmt.Sprint(c.reason); why != c.shown {
			c.shown = why
			c.con.Status(why + "; trying again")
		}
		c.backoff = min(max(2*c.backoff, redialFirst), redialMost)
		rdma.After(ctx, c.backoff, &redial{})
	}
}

// quit leaves after everything typed was sent, or when that takes too long.
func (c *client) quit(ctx actor.Context, m *quit) {
	c.quits, c.now, c.failed = true, c.now || m.now, errors.Join(c.failed, m.why)
	switch {
	case c.id == nil:
		c.end(c.unsent())
	case c.up:
		if n := len(c.waiting) + len(c.sent); n > 0 && c.now {
			c.con.Status("leaving when " + room.Plural(n, "line") + " typed before are sent; Ctrl-C leaves at once")
		}
		c.leaveSoon(ctx)
		c.finish(ctx)
	case m.now:
		c.reason = errors.New("there is no connection yet")
		c.destroy(ctx)
	}
}

// leaveSoon limits how long the client still sends lines.
func (c *client) leaveSoon(ctx actor.Context) {
	d := console.PipeFor
	if c.now {
		d = leaveFor
	}
	rdma.After(ctx, d, &giveUp{c.id, true})
}

// finish closes the connection of a leaving user once no line is waiting.
func (c *client) finish(ctx actor.Context) {
	if c.quits && c.up && len(c.waiting) == 0 && len(c.sent) == 0 {
		ctx.Request(c.id, &rdma.Close{Timeout: console.PipeFor})
	}
}

// unsent returns an error with the number of lines that were not sent, or nil if all were.
func (c *client) unsent() error {
	n := len(c.waiting)
	if n == 0 {
		return c.failed
	}
	return errors.Join(c.failed, fmt.Errorf("%s not sent: %w", room.Plural(n, "line"), c.reason))
}

// end reports the outcome, once.
func (c *client) end(err error) {
	if c.ended != nil {
		c.ended <- err
		c.ended = nil
	}
}
