package main

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// whereHelp describes this chat's additional command.
const whereHelp = "\n/where             which member has the room"

// typed handles a line that the person typed.
func (u *user) typed(ctx actor.Context, text string) {
	token := ask{token: true}
	if strings.TrimSpace(text) == "/where" {
		u.con.Status(u.where())
		u.release(token)
		return
	}
	l, local := room.Parse(text)
	if local != "" {
		u.con.Status(strings.Replace(local, room.HelpText, room.HelpText+whereHelp, 1))
	}
	if l.Type == "" || u.quits {
		u.release(token)
		return
	}
	token.msg, token.repeat = message(l)
	if _, name := token.msg.(*take); name && (u.out || !u.refusals.IsZero()) {
		// it may end the reason why the person is kept out
		u.waiting = append([]ask{token}, u.waiting...)
	} else {
		u.waiting = append(u.waiting, token)
	}
	u.flush(ctx)
}

// message returns a typed line's request, and whether that may be repeated.
func message(l room.Line) (msg any, repeat bool) {
	switch l.Type {
	case "say":
		return &say{l.Text}, false
	case "private":
		return &private{l.To, l.Text}, false
	case "nick":
		return &take{Nick: l.Text}, true
	case "room":
		return &take{Room: l.Text}, true
	case "rooms":
		return &whichRooms{}, true
	}
	return &whoIsHere{}, true
}

// flush sends the waiting requests, in the order in which they were typed, until one whose grain
// has not let the person in.
func (u *user) flush(ctx actor.Context) {
	for len(u.waiting) > 0 && u.ready(&u.waiting[0]) {
		a := u.waiting[0]
		u.waiting = u.waiting[1:]
		u.ask(ctx, a)
	}
	u.leave(ctx)
}

// ready reports whether a can be sent now, and sets its grain.
func (u *user) ready(a *ask) bool {
	a.of = u.hall
	name, isTake := a.msg.(*take)
	switch a.msg.(type) {
	case *take, *private, *whichRooms:
		a.of = u.dir
	}
	if a.of == nil || !a.of.in || len(a.of.limbo) > 0 {
		return false
	}
	if !isTake {
		return !u.out && !u.moving()
	}
	for _, g := range []*grain{u.dir, u.hall} { // a take changes the person's name or room
		if g != nil && len(g.asked)+len(g.limbo) > 0 {
			return false
		}
	}
	if name.Nick == "" {
		name.Nick = u.nick
	}
	if name.Room == "" {
		name.Room = u.room
	}
	return true
}

// ask sends a request to a grain that has let the person in.
func (u *user) ask(ctx actor.Context, a ask) {
	a.of.asked = append(a.of.asked, a)
	ctx.Request(a.of.pid, a.msg)
}

// moving reports whether the directory was asked for another name, or another room.
func (u *user) moving() bool {
	return slices.ContainsFunc(u.dir.asked, func(a ask) bool { _, is := a.msg.(*take); return is })
}
