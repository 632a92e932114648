package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	dialFor     = 5 * time.Second
	redialFirst = 250 * time.Millisecond
	redialMost  = 10 * time.Second
	closeFor    = 5 * time.Second
	// ahead is how many of the user's lines may be waiting, typed while the server is away or slow.
	ahead = 64
)

const helpText = `/help              this text
/nick NAME         change your nickname
/room NAME         go to another room
/who               who is in this room
/rooms             the rooms
/msg NAME TEXT     a private message
/quit              leave (so do Ctrl-C and Ctrl-D)`

// client is the actor that keeps one connection to the server alive: it connects, talks, and when the server goes away it tries
// again. It may block (the console does), so it runs off the loop.
type client struct {
	rt     *rdma.Runtime
	server string
	hello  hello
	con    console
	tokens <-chan struct{} // one is taken back for every line that left
	ended  chan<- error    // gets the outcome, once

	id      *actor.PID // the identifier of the present attempt
	up      bool       // connected
	been    bool       // was connected before
	quits   bool       // the user is leaving
	backoff time.Duration
	waiting []line // not yet sent
	sent    []line // handed to the connection; Sent and SendFailed come back in this order
	reason  error  // why the attempt failed
	told    string // the reason that was shown last
}

// The messages of the program to the client.
type (
	typed  struct{ text string }
	redial struct{}
	quit   struct{ now bool } // now: do not wait for a connection that is being made
)

// Receive handles the user's lines and the connection's events.
func (c *client) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started, *redial:
		c.dial(ctx)
	case *typed:
		c.typed(ctx, m.text)
	case *quit:
		c.quit(ctx, m.now)
	case *rdma.Established:
		c.established(ctx)
	case *rdma.Received:
		c.received(m)
	case *rdma.Sent:
		c.sent = c.sent[1:]
		<-c.tokens
		c.finish(ctx)
	case *rdma.SendFailed:
		c.sendFailed(ctx, m)
	case *rdma.Writable:
		c.flush(ctx)
	case *rdma.Rejected:
		c.reason = c.because(m)
		if len(m.PrivateData) > 0 {
			c.reason = fmt.Errorf("%s says: %s", c.server, clean(string(m.PrivateData)))
		}
	case *rdma.Disconnected:
		c.reason = fmt.Errorf("%s has closed the connection", c.server)
		if m.Err != nil {
			c.reason = fmt.Errorf("%s is lost: %w", c.server, m.Err)
		}
	case *rdma.Closed:
		c.closed(ctx, m)
	case rdma.Failure:
		c.reason = c.because(m)
		if c.id != nil { // not every failure costs the identifier; the next attempt has one of its own
			ctx.Request(c.id, &rdma.DestroyID{})
		}
	}
}

func (c *client) dial(ctx actor.Context) {
	if c.quits {
		return
	}
	c.reason = nil
	c.id = c.rt.CreateID(ctx.Self())
	ctx.Request(c.id, &rdma.Dial{Addr: c.server, Timeout: dialFor, PrivateData: c.hello.encode()})
}

// because is a failure's cause. The whole story, with states and history, is for --debug.
func (c *client) because(f rdma.Failure) error {
	cause := errors.Unwrap(f)
	if cause == nil {
		cause = f
	}
	if strings.Contains(cause.Error(), c.server) {
		return cause
	}
	return fmt.Errorf("%s: %w", c.server, cause)
}

func (c *client) established(ctx actor.Context) {
	c.up, c.backoff, c.told = true, 0, ""
	if c.been {
		c.con.Status("connected again")
	} else {
		c.con.Status("connected to " + c.server)
	}
	c.been = true
	c.flush(ctx)
	c.finish(ctx)
}

// typed takes a line of the user's.
func (c *client) typed(ctx actor.Context, text string) {
	l, local := parse(text)
	if local != "" {
		c.con.Status(local)
	}
	switch {
	case l.Type == "":
		<-c.tokens
		return
	case !c.up && c.been && (l.Type == "nick" || l.Type == "room"): // perhaps why the server does not let us in again
		c.rename(l)
		<-c.tokens
		return
	case !c.up && c.been:
		c.con.Status("not connected: that waits until the server is back")
	}
	c.waiting = append(c.waiting, l)
	c.flush(ctx)
}

// rename changes what the next dial asks for.
func (c *client) rename(l line) {
	what, field, limit := "nickname", &c.hello.nick, maxNick
	if l.Type == "room" {
		what, field, limit = "room", &c.hello.room, maxRoom
	}
	if err := checkName(what, l.Text, limit); err != nil {
		c.con.Status(err.Error())
		return
	}
	*field = l.Text
	c.con.Status(fmt.Sprintf("the %s will be %s", what, l.Text))
}

// parse makes a request of what was typed, or a text for the user.
func parse(text string) (l line, local string) {
	text = strings.TrimRight(text, " \r\n")
	slash := strings.TrimLeft(text, " \t")
	switch {
	case slash == "":
		return line{}, ""
	case len(text) > maxText:
		return line{Type: "say", Text: truncate(clean(text), maxText)}, fmt.Sprintf("that line was cut after %d bytes", maxText)
	case slash[0] != '/':
		return line{Type: "say", Text: clean(text)}, ""
	}
	command, rest, _ := strings.Cut(slash[1:], " ")
	rest = strings.TrimSpace(clean(rest))
	switch command {
	case "help":
		return line{}, helpText
	case "nick", "room":
		if rest == "" {
			return line{}, "/" + command + " needs a name"
		}
		return line{Type: command, Text: rest}, ""
	case "who", "rooms":
		return line{Type: command}, ""
	case "msg":
		to, what, ok := strings.Cut(rest, " ")
		if !ok {
			return line{}, "/msg NAME TEXT"
		}
		return line{Type: "private", To: to, Text: what}, ""
	}
	return line{}, "unknown command /" + clean(command) + "; /help lists them"
}

// flush hands the waiting lines to the connection.
func (c *client) flush(ctx actor.Context) {
	if !c.up {
		return
	}
	for _, l := range c.waiting {
		send := rdma.NewSend(l.encode())
		send.Notify = true
		ctx.Request(c.id, send)
		c.sent = append(c.sent, l)
	}
	c.waiting = nil
}

// sendFailed keeps the lines for the next time.
func (c *client) sendFailed(ctx actor.Context, m *rdma.SendFailed) {
	l := c.sent[:m.Sends]
	c.sent = c.sent[m.Sends:]
	if errors.Is(m, rdma.ErrTooLarge) {
		c.con.Status("that line is too long")
		<-c.tokens
		c.finish(ctx)
		return
	}
	c.waiting = append(c.waiting, l...)
}

// received shows a line.
func (c *client) received(m *rdma.Received) {
	l, err := decode(m.Data)
	if err != nil {
		c.con.Status(err.Error())
		return
	}
	past := ""
	if l.Past {
		past = "(earlier) "
	}
	switch l.Type {
	case "say":
		c.con.Print(fmt.Sprintf("%s[%s] %s: %s", past, l.Room, l.From, l.Text))
	case "private":
		c.con.Print(fmt.Sprintf("(private) %s: %s", l.From, l.Text))
	case "notice":
		c.con.Print("* " + l.Text)
	case "you": // a new name or room is kept for the next dial
		c.hello = hello{nick: l.From, room: l.Room}
	}
}

// closed ends the program or tries again.
func (c *client) closed(ctx actor.Context, m *rdma.Closed) {
	c.up, c.id = false, nil
	if m.Unknown > 0 && !c.quits {
		c.con.Status(plural(int(m.Unknown), "line") + " may not have arrived")
	}
	if c.reason == nil {
		c.reason = m.Err
	}
	switch {
	case !c.been:
		c.end(c.reason)
	case c.quits:
		c.end(c.unsent())
	default:
		if why := fmt.Sprint(c.reason); why != c.told {
			c.told = why
			c.con.Status(why + "; trying again")
		}
		c.backoff = min(max(2*c.backoff, redialFirst), redialMost)
		rdma.After(ctx, c.backoff, &redial{})
	}
}

// quit leaves when everything typed has left.
func (c *client) quit(ctx actor.Context, now bool) {
	c.quits = true
	if now && !c.up && c.id != nil { // it is still connecting
		ctx.Request(c.id, &rdma.DestroyID{})
		return
	}
	c.finish(ctx)
}

// finish closes the connection of a user who is leaving, once nothing of theirs is waiting.
func (c *client) finish(ctx actor.Context) {
	switch {
	case !c.quits:
	case c.id == nil:
		c.end(c.unsent())
	case c.up && len(c.waiting) == 0 && len(c.sent) == 0:
		ctx.Request(c.id, &rdma.Close{Timeout: closeFor})
	}
}

// unsent says that lines never left, nil when all did.
func (c *client) unsent() error {
	if len(c.waiting) == 0 {
		return nil
	}
	return fmt.Errorf("%s not sent: %w", plural(len(c.waiting), "line"), c.reason)
}

func (c *client) end(err error) {
	if c.ended != nil {
		c.ended <- err
		c.ended = nil
	}
}
