package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/chat/console"
	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// userName is the name of a person's actor. Rooms of other members watch it and send to it.
const userName = "user"

const (
	// refusedFor is how long a room may refuse a name that the directory has granted, because it
	// does not know yet that the previous owner of that name has gone.
	refusedFor = 5 * time.Second
	// leaveFor is how long typed lines may still be sent when their person leaves.
	leaveFor = 2 * time.Second
	// byeFor is how long the room and the directory may take to answer a goodbye.
	byeFor = 2 * time.Second
	// byeLate is how long after the news of its end a grain's answer may arrive.
	byeLate = 100 * time.Millisecond
)

// user is the actor of the person at this console. It may block, because the console does.
type user struct {
	find  func(kind, id string) *actor.PID // blocks; nil: not now
	con   console.Console
	in    *console.Input
	ended chan<- error // gets the outcome, once

	nick, room string
	dir, hall  *grain // hall is nil until the directory has granted a name
	been       bool   // was in a room
	out        bool   // has lost its name, and has to take another one
	waiting    []ask  // typed, not sent
	refusals   time.Time

	quits  bool // the person is leaving
	failed error
}

// The messages of the program to the person's actor.
type (
	typed struct{ text string }
	// quit leaves: at the end of a pipe when all is sent, at a person's request soon.
	quit struct {
		now bool
		why error // nil: requested by the user
	}
	// giveUp ends a leaving that takes too long.
	giveUp struct{}
	// carry asks for a *carried, for a session that follows.
	carry struct{}
)

// carried is the state of a person for the next session.
type carried struct {
	nick, room string
	been       bool
	waiting    []ask
}

// Receive handles the person's lines, and the messages of the room and the directory.
func (u *user) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		u.dir = &grain{kind: directoryKind, id: everybody}
		u.look(ctx, u.dir)
	case *actor.Stopping:
		u.abandon()
	case *actor.Terminated:
		u.lost(ctx, m)
	case *actor.DeadLetterResponse:
		u.deadLetter(ctx, m.Target)
	case *seek:
		u.seek(ctx, search(*m))
	case *found:
		u.found(ctx, m)
	case *late:
		u.late(ctx, search(*m))
	case *unanswered:
		if m.g.try == m.try && m.g.bye == said {
			u.notLeft(ctx, m.g)
		}
	case *over:
		u.over(ctx, m.g)
	case *typed:
		u.typed(ctx, m.text)
	case *quit:
		u.quit(ctx, m)
	case *giveUp:
		u.end(u.unsent())
	case *carry:
		u.abandon()
		ctx.Respond(&carried{u.nick, u.room, u.been, u.unsettled()})
	default:
		switch g, gone := u.of(ctx.Sender()); {
		case g == nil:
		case gone:
			u.answeredLate(ctx, g, m)
		default:
			u.answered(ctx, g, m)
		}
	}
}

func (u *user) abandon() {
	for _, g := range []*grain{u.dir, u.hall} {
		if g != nil {
			g.abandon()
		}
	}
}

// answered handles an answer of the room or the directory.
func (u *user) answered(ctx actor.Context, g *grain, m any) {
	switch m := m.(type) {
	case *heard:
		u.heard(ctx, g, m)
		return // not an answer to a request
	case *granted:
		u.pop(ctx, g)
		u.granted(ctx, m)
	case *refused:
		u.refused(ctx, g, m.Why)
	case *took:
		u.pop(ctx, g)
	case *bye:
		g.bye = answered
	}
	u.flush(ctx)
}

// answeredLate handles a message that a grain sent before its end.
func (u *user) answeredLate(ctx actor.Context, g *grain, m any) {
	switch m := m.(type) {
	case *heard:
		if l, err := m.Line.Checked(); err == nil {
			u.show(ctx, l)
			g.with.change(m.change)
		}
	case *took, *granted:
		u.popLimbo(ctx, g)
	case *bye:
		g.bye = answered
		u.gone()
	}
}

// pop removes an answered request.
func (u *user) pop(ctx actor.Context, g *grain) {
	switch {
	case g.inLimbo():
		u.popLimbo(ctx, g)
	case len(g.asked) > 0:
		u.release(g.asked[0])
		g.asked = g.asked[1:]
	}
}

func (u *user) popLimbo(ctx actor.Context, g *grain) {
	if len(g.limbo) > 0 {
		u.release(g.limbo[0])
		g.limbo = g.limbo[1:]
		u.settled(ctx, g)
	}
}

// release allows the input one more line for each typed one.
func (u *user) release(done ...ask) {
	for _, a := range done {
		if a.token {
			u.in.Done()
		}
	}
}

// heard shows a line, and reports every takenEvery-th.
func (u *user) heard(ctx actor.Context, g *grain, m *heard) {
	if missed := m.N - g.n - 1; g.in && missed > 0 && missed < 1<<32 {
		u.con.Status(room.Plural(int(missed), "line") + " left out")
	}
	g.n, g.seen = m.N, m.Sent
	switch l, err := m.Line.Checked(); {
	case err != nil:
		u.con.Status(err.Error())
	case l.Type == "you" && g == u.hall:
		u.entered(ctx, l.From)
	default:
		u.show(ctx, l)
	}
	u.changed(ctx, g, m)
	if g.shown++; g.shown%takenEvery == 0 && g.pid != nil {
		ctx.Request(g.pid, &taken{m.N})
	}
}

// entered is called when a room has let the person in, under the requested name.
func (u *user) entered(ctx actor.Context, as string) {
	u.hall.in, u.hall.fails, u.hall.as, u.been, u.refusals = true, 0, as, true, time.Time{}
	if as != u.nick && len(u.hall.asked) == 0 { // the directory has granted another one since
		u.ask(ctx, ask{of: u.hall, msg: &renamed{u.nick}, repeat: true})
	}
	u.flush(ctx)
}

// granted moves to the room, and takes the name, that the directory has granted.
func (u *user) granted(ctx actor.Context, m *granted) {
	u.dir.in, u.dir.fails, u.out = true, 0, false
	before := u.nick
	u.nick = m.Nick
	switch {
	case u.hall == nil || u.hall.id != m.Room:
		u.move(ctx, m.Room)
	case u.nick != before && u.hall.in:
		u.ask(ctx, ask{of: u.hall, msg: &renamed{u.nick}, repeat: true})
	case u.hall.pid == nil && u.hall.stop == nil:
		u.look(ctx, u.hall)
	}
}

// move leaves a room for another.
func (u *user) move(ctx actor.Context, to string) {
	if u.hall != nil {
		u.goodbye(ctx, u.hall, "went to "+to)
	}
	u.room, u.hall = to, &grain{kind: hallKind, id: to}
	u.look(ctx, u.hall)
}

// goodbye leaves a grain.
func (u *user) goodbye(ctx actor.Context, g *grain, how string) {
	g.abandon()
	if g.pid != nil {
		ctx.Unwatch(g.pid)
		ctx.Request(g.pid, &leave{how})
	}
	g.pid, g.in, g.lost = nil, false, ""
}

// refused handles the refusal of a name.
func (u *user) refused(ctx actor.Context, g *grain, why string) {
	switch {
	// the new name is taken here, until the room learns of its owner's end
	case g == u.hall && g.in:
		u.con.Status(why)
	case g == u.hall: // the previous owner of the name is lost, and the room does not know yet
		if u.refusals.IsZero() {
			u.refusals = time.Now()
		}
		if time.Since(u.refusals) < refusedFor {
			ctx.Unwatch(g.pid)
			u.look(ctx, g)
			return
		}
		u.stay(ctx, why)
	case g.in: // a typed line
		u.pop(ctx, g)
		u.con.Status(why)
	default:
		u.pop(ctx, g)
		g.in, g.fails = true, 0
		u.stay(ctx, why)
	}
}

// stay keeps the person out until they have taken another name.
func (u *user) stay(ctx actor.Context, why string) {
	if !u.been {
		u.end(errors.New(why))
		return
	}
	u.out = true
	if u.hall != nil {
		u.goodbye(ctx, u.hall, "left")
	}
	u.con.Status(why + "; /nick takes another one")
}

func (u *user) show(ctx actor.Context, l room.Line) {
	if text := l.Show(); text != "" {
		u.print(ctx, text)
	}
}

// print shows a line of the chat. If that fails, the chat is no longer visible, and the person
// leaves.
func (u *user) print(ctx actor.Context, s string) {
	if err := u.con.Print(s); err != nil {
		u.quit(ctx, &quit{now: true, why: err})
	}
}

// unknown reports lines whose fate is unknown. They are not sent again.
func (u *user) unknown(n int) {
	lost := fmt.Errorf("%s may not have arrived", room.Plural(n, "line"))
	if u.quits {
		u.failed = errors.Join(u.failed, lost)
	} else {
		u.con.Status(lost.Error())
	}
}

// unsettled lists the unfinished requests.
func (u *user) unsettled() []ask {
	var all []ask
	for _, g := range []*grain{u.dir, u.hall} {
		if g != nil {
			all = append(all, g.back...)
		}
	}
	return append(all, u.waiting...)
}

// quit leaves when all typed lines were sent, or when that takes too long.
func (u *user) quit(ctx actor.Context, m *quit) {
	u.quits, u.failed = true, errors.Join(u.failed, m.why)
	d := console.PipeFor
	if m.now {
		d = leaveFor
		if n := u.pending(); n > 0 {
			u.con.Status("leaving when " + room.Plural(n, "line") + " typed before are sent; Ctrl-C leaves at once")
		}
	}
	rdma.After(ctx, d, &giveUp{})
	u.flush(ctx)
}

// pending returns how many typed lines are unfinished.
func (u *user) pending() int {
	n := len(u.waiting)
	for _, g := range []*grain{u.dir, u.hall} {
		if g == nil {
			continue
		}
		for _, a := range append(append(g.asked[:len(g.asked):len(g.asked)], g.limbo...), g.back...) {
			if a.token {
				n++
			}
		}
	}
	return n
}

// leave sends the goodbyes when none of the person's lines is waiting. If the room is lost, it
// waits for its return, because otherwise the others would not learn that this person is missing.
func (u *user) leave(ctx actor.Context) {
	if !u.quits || u.pending() > 0 || u.hall != nil && !u.hall.in && u.hall.lost != "" {
		return
	}
	for _, g := range []*grain{u.hall, u.dir} {
		if g != nil && g.pid != nil && g.bye == unsaid {
			pid := g.pid
			u.goodbye(ctx, g, "left")
			ctx.Watch(pid) // goodbye has unwatched it
			g.pid, g.bye = pid, said
			rdma.After(ctx, byeFor, &giveUp{})
		}
	}
	u.gone()
}

// gone ends the person when both grains have answered the goodbye, or do not know the person.
func (u *user) gone() {
	for _, g := range []*grain{u.hall, u.dir} {
		if g != nil && g.pid != nil && g.bye != answered {
			return
		}
	}
	u.end(u.unsent())
}

// notLeft handles a grain that had gone before the goodbye. A new directory does not know the
// person. The room is silently entered again, and left.
func (u *user) notLeft(ctx actor.Context, g *grain) {
	g.bye = answered
	if g == u.hall {
		g.bye, g.lost = unsaid, key(g.pid)
		u.look(ctx, g)
		return
	}
	u.gone()
}

// unsent returns an error with the number of unsent lines. nil: none, and no failure.
func (u *user) unsent() error {
	if n := u.pending(); n > 0 {
		return errors.Join(u.failed, fmt.Errorf("%s not sent", room.Plural(n, "line")))
	}
	return u.failed
}

// end reports the outcome, once.
func (u *user) end(err error) {
	if u.ended != nil {
		u.ended <- err
		u.ended = nil
	}
}

// where returns the members that have the room and the directory.
func (u *user) where() string {
	at := func(g *grain) string {
		if g == nil || g.pid == nil {
			return "being looked for"
		}
		return "at " + g.pid.Address
	}
	return strings.Join([]string{u.room, at(u.hall) + ", the directory", at(u.dir)}, " is ")
}

// newUser returns the actor of a person.
func newUser(who *carried, con console.Console, in *console.Input, ended chan<- error) *user {
	return &user{
		con: con, in: in, ended: ended,
		nick: who.nick, room: who.room, been: who.been, waiting: who.waiting,
	}
}
