package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// dialFor limits how long connecting may take.
const dialFor = 5 * time.Second

// client is the actor that owns the connection to the room. It prints, which may block, so it does
// not run on the loop.
type client struct {
	rt         *rdma.Runtime
	addr, nick string
	out        io.Writer
	next       chan<- struct{} // receives a value when the client is ready for another line
	leave      func(why error) // ends the program

	id  *actor.PID // the connection
	why error      // of the last failure
}

// typed is a line from the user.
type typed struct{ line []byte }

// joinRoom talks in the room at addr until in, ctx or the connection ends.
func joinRoom(ctx context.Context, rt *rdma.Runtime, addr, nick string, in io.Reader, out io.Writer) error {
	ctx, leave := context.WithCancelCause(ctx)
	next := make(chan struct{}, 1)
	c := &client{rt: rt, addr: addr, nick: nick, out: out, next: next, leave: leave}
	pid := rt.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }, rt.OffLoop()))
	go func() {
		lines := bufio.NewScanner(in)
		for { // a pipe is read no faster than its lines are sent
			select {
			case <-next:
			case <-ctx.Done():
				return
			}
			if !lines.Scan() {
				leave(lines.Err())
				return
			}
			rt.System().Root.Send(pid, typed{lines.Bytes()})
		}
	}()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Receive handles the user's lines and the connection's events.
func (c *client) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.id = c.rt.CreateID(ctx.Self())
		ctx.Request(c.id, &rdma.Dial{Addr: c.addr, Timeout: dialFor, PrivateData: []byte(c.nick)})
	case *rdma.Established:
		c.printLine("-- you are " + c.nick)
		c.next <- struct{}{}
	case typed:
		send := rdma.NewSend(m.line)
		send.Notify = true // Sent follows
		ctx.Request(c.id, send)
	case *rdma.Sent:
		c.next <- struct{}{}
	case *rdma.SendFailed:
		if errors.Is(m, rdma.ErrTooLarge) {
			c.printLine("-- that line is too long")
			c.next <- struct{}{}
		} // else the connection is lost, and Closed follows
	case *rdma.Received:
		c.printLine(string(m.Data))
	case *rdma.Rejected:
		c.why = m
		if len(m.PrivateData) > 0 {
			c.why = errors.New(cleanLine(string(m.PrivateData)))
		}
	case *rdma.Closed: // always the last event
		if c.why == nil {
			c.why = m.Err
		}
		if c.why == nil {
			c.why = errors.New("the host has left")
		}
		c.leave(fmt.Errorf("%s: %s", c.addr, rdma.Brief(c.why)))
	case rdma.Failure: // what failed, between whom, in which state, why
		c.why = m
	}
}

// printLine prints a line. If that fails, the program ends.
func (c *client) printLine(line string) {
	if _, err := fmt.Fprintln(c.out, cleanLine(line)); err != nil {
		c.leave(err)
	}
}

// cleanLine removes what could change the terminal.
func cleanLine(line string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, line)
}
