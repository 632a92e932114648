package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/lab/chat/room"
)

// The chat's sections of the live page: its people and its rooms. The server's actor owns them, so
// the page asks it, at most once per interval and only while a browser reads the page.

// person is a connection and its user.
type person struct {
	Identifier    rdma.Handle
	Nick, Room    string // "": no hello received yet
	Identity      string // the owner of its key or certificate; "": the connection is not secured
	Peer          rdma.Addr
	LinesWaiting  int // lines queued for it
	WaitingBytes  int
	LinesTaken    int
	LinesMissed   int // since the last notice of missed lines
	LinesRetained int // received lines beyond its pace
}

// roomRow is a room that is not empty.
type roomRow struct {
	Room         string
	Members      int
	LinesWaiting int // sum over its members
	Who          string
}

// census requests the list of people from the server.
type census struct{ answer chan<- []person } // buffered

// people returns the answer to a census.
func (s *server) people() []person {
	all := make([]person, 0, len(s.peers))
	for _, p := range s.peers {
		one := person{
			Identifier: p.id, Identity: p.identity, Peer: p.addr, LinesWaiting: len(p.lines), WaitingBytes: p.waiting,
			LinesTaken: p.taken, LinesMissed: p.missed, LinesRetained: len(p.retained),
		}
		if p.member != nil {
			one.Nick, one.Room = p.member.Nick, p.member.Room.Name
		}
		all = append(all, one)
	}
	return all
}

// sectionsOf returns the page's tables of a server's people and rooms. They are empty if ctx ends.
func sectionsOf(ctx context.Context, system *actor.ActorSystem, server *actor.PID) []inspect.Section {
	ask := func() []person {
		answer := make(chan []person, 1)
		system.Root.Send(server, &census{answer})
		select {
		case all := <-answer:
			slices.SortFunc(all, func(a, b person) int {
				return cmp.Or(cmp.Compare(a.Nick, b.Nick), cmp.Compare(a.Identifier, b.Identifier))
			})
			return all
		case <-ctx.Done():
			return nil
		}
	}
	return []inspect.Section{
		inspect.Rows("people", "People", ask),
		inspect.Rows("rooms", "Rooms", func() []roomRow { return roomsOf(ask()) }),
	}
}

// roomsOf groups people, who are sorted by name, into rooms.
func roomsOf(all []person) (rooms []roomRow) {
	who := make(map[string][]string)
	rows := make(map[string]*roomRow)
	for _, p := range all {
		if p.Nick == "" {
			continue
		}
		if rows[p.Room] == nil {
			rows[p.Room] = &roomRow{Room: p.Room}
		}
		rows[p.Room].Members++
		rows[p.Room].LinesWaiting += p.LinesWaiting
		who[p.Room] = append(who[p.Room], p.Nick)
	}
	for name, r := range rows {
		r.Who = room.List(who[name])
		rooms = append(rooms, *r)
	}
	slices.SortFunc(rooms, func(a, b roomRow) int { return cmp.Compare(a.Room, b.Room) })
	return rooms
}
