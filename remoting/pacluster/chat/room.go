package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
)

const (
	roomKind   = "room"
	personName = "person" // of each process's only person
	lookAfter  = time.Second / 10
)

// The messages between people and the room, on whatever members they are.
type (
	enter struct{ Nick string }
	say   struct{ Text string }
	took  struct{} // the room's answer to say
	heard struct{ Line string }
)

var messages = codec.New(
	codec.JSON[*enter]("chat.enter"), codec.JSON[*say]("chat.say"), codec.JSON[*took]("chat.took"), codec.JSON[*heard]("chat.heard"),
)

// room is the virtual actor. It remembers nothing but the people, who enter again if it is lost.
type room struct{ people map[string]guest }

type guest struct {
	pid  *actor.PID
	nick string
}

func newRoom() actor.Actor { return &room{people: make(map[string]guest)} }

func (r *room) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *enter:
		key := ctx.Sender().String()
		if _, here := r.people[key]; !here {
			r.people[key] = guest{ctx.Sender(), m.Nick}
			ctx.Watch(ctx.Sender()) // Terminated follows, also when its process is killed
			r.sendLine(ctx, "", "-- "+m.Nick+" is here")
		}
	case *say:
		key := ctx.Sender().String()
		if who, here := r.people[key]; here {
			r.sendLine(ctx, key, who.nick+": "+m.Text)
		}
		ctx.Respond(&took{})
	case *actor.Terminated:
		key := m.Who.String()
		who := r.people[key]
		delete(r.people, key)
		r.sendLine(ctx, "", "-- "+who.nick+" left")
	}
}

// sendLine sends a line to all but one. It waits for nobody: lines for a process that does not read
// are dropped when remoting.Config.Queue is full.
func (r *room) sendLine(ctx actor.Context, but, line string) {
	for key, g := range r.people {
		if key != but {
			ctx.Send(g.pid, &heard{line})
		}
	}
}

// person is the actor of this process's user. Printing, and looking for the room, may block, so it
// does not run on a loop.
type person struct {
	nick  string
	out   io.Writer
	find  func() *actor.PID // the room; nil: the cluster has none yet
	next  chan<- struct{}   // receives a value when the person is ready for another line
	leave func(why error)

	room *actor.PID
	line *say // typed, and not taken by the room yet; nil: none
}

// typed is a line from the user, look a message of the person to itself.
type (
	typed struct{ text string }
	look  struct{}
)

func (p *person) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started, look:
		p.enterRoom(ctx)
	case typed:
		p.line = &say{m.text}
		p.sendLine(ctx)
	case *took:
		if p.line != nil {
			p.line = nil
			p.next <- struct{}{}
		}
	case *heard:
		p.printLine(m.Line)
	case *actor.Terminated: // the room is lost: it is made again
		if m.Who.Equal(p.room) {
			p.room = nil
			rdma.After(ctx, lookAfter, look{})
		}
	}
}

// enterRoom enters the room. A line that a lost one has not answered is said again in its
// successor, so it may appear twice.
func (p *person) enterRoom(ctx actor.Context) {
	if p.room = p.find(); p.room == nil {
		rdma.After(ctx, lookAfter, look{})
		return
	}
	p.printLine("-- the room is at " + p.room.Address)
	ctx.Watch(p.room)
	ctx.Request(p.room, &enter{p.nick})
	p.sendLine(ctx)
}

func (p *person) sendLine(ctx actor.Context) {
	if p.room != nil && p.line != nil {
		ctx.Request(p.room, p.line)
	}
}

// printLine prints a line without characters that could change the terminal.
func (p *person) printLine(line string) {
	clean := strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, line)
	if _, err := fmt.Fprintln(p.out, clean); err != nil {
		p.leave(err)
	}
}
