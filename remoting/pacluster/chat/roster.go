package main

import (
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// roster has the people in a room, as far as a person has seen. If the room is lost together with
// some of them, or just after they left, the new room does not know that they were there; the
// roster does.
type roster map[string]struct{}

// change records arrivals and departures.
func (r *roster) change(c change) {
	if *r == nil {
		*r = make(roster)
	}
	delete(*r, c.Went)
	if c.Came != "" {
		(*r)[c.Came] = struct{}{}
	}
}

// replace sets the people in the room, and returns the missing ones.
func (r *roster) replace(with []string) (gone []string) {
	for name := range maps.Keys(*r) {
		if !slices.Contains(with, name) {
			gone = append(gone, name)
		}
	}
	*r = make(roster)
	for _, name := range with {
		r.change(change{Came: name})
	}
	slices.Sort(gone)
	return gone
}

// changed updates the people in a room, and shows which ones are gone.
func (u *user) changed(ctx actor.Context, g *grain, m *heard) {
	g.with.change(m.change)
	if !m.Whole {
		for _, name := range m.With {
			g.with.change(change{Came: name})
		}
		return
	}
	for _, name := range g.with.replace(m.With) {
		if len(m.With) > 0 && name != g.as {
			u.show(ctx, room.Notice(g.id, "%s is gone", name))
		}
	}
}
