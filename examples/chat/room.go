package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	maxName = 20
	maxLine = 1 << 10 // bytes
)

// room is the actor that owns the listener and all connections. It runs on the runtime's loop.
// Sending never blocks: lines for a person who does not read wait in that person's connection, and
// beyond its limit (rdma.Limits.SendQueue) they are counted as missed.
type room struct {
	people map[string]*person // keyed by the id of the connection's PID
}

// person is a connection, from its request on.
type person struct {
	pid    *actor.PID
	name   string
	here   bool // the connection is established
	missed int  // lines since the connection had no room for them
}

// hostRoom starts a room that listens at addr. It returns the address with the port that was
// chosen.
func hostRoom(ctx context.Context, rt *rdma.Runtime, addr string) (rdma.Addr, error) {
	pid := rt.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &room{people: make(map[string]*person)}
	}, rt.OnLoop()))
	listening, err := rdma.Ask[*rdma.Listening](ctx, rt, rt.CreateID(pid, rdma.IDConfig{MaxMessage: maxLine}), &rdma.Serve{Addr: addr})
	if err != nil {
		return rdma.Addr{}, err
	}
	return listening.Local, nil
}

// Receive handles the events of the connections. The Sender is the connection.
func (r *room) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*rdma.ConnectRequest); ok {
		r.answerRequest(ctx, m)
		return
	}
	if ctx.Sender() == nil {
		return
	}
	p := r.people[ctx.Sender().Id]
	if p == nil {
		return
	}
	switch m := ctx.Message().(type) {
	case *rdma.Established:
		p.here = true
		r.sendLine(ctx, nil, "-- "+p.name+" joined")
	case *rdma.Received:
		r.sendLine(ctx, p, p.name+": "+string(m.Data))
	case *rdma.SendFailed:
		p.missed += m.Sends
	case *rdma.Writable:
		ctx.Request(p.pid, rdma.NewSend(fmt.Appendf(nil, "-- you missed %d lines", p.missed)))
		p.missed = 0
	case *rdma.Closed: // always the last event
		delete(r.people, p.pid.Id)
		if p.here {
			r.sendLine(ctx, nil, "-- "+p.name+" left")
		}
	}
}

// answerRequest answers a connection request, whose private data is a name.
func (r *room) answerRequest(ctx actor.Context, m *rdma.ConnectRequest) {
	name := string(bytes.TrimRight(m.PrivateData, "\x00")) // InfiniBand pads with zeros
	if err := r.checkName(name); err != nil {
		ctx.Respond(&rdma.Reject{PrivateData: []byte(err.Error())})
		return
	}
	if m.Identity != "" && m.Identity != name {
		name += " (" + m.Identity + ")" // whose key it is
	}
	r.people[ctx.Sender().Id] = &person{pid: ctx.Sender(), name: name}
	ctx.Respond(&rdma.Accept{})
}

func (r *room) checkName(name string) error {
	other := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, other) {
		return errors.New("a name is a few letters")
	}
	for _, p := range r.people {
		if taken, _, _ := strings.Cut(p.name, " "); taken == name {
			return errors.New("that name is taken")
		}
	}
	return nil
}

// sendLine sends a line to all people but from.
func (r *room) sendLine(ctx actor.Context, from *person, line string) {
	for _, p := range r.people {
		if p.here && p != from {
			ctx.Request(p.pid, rdma.NewSend([]byte(line)))
		}
	}
}
