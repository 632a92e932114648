package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/chat/room"
	"github.com/rdmactor/rdmactor/inspect"
)

// What the live page shows of the chat: its people and its rooms. The server's actor has them, so
// the page asks it, at most once for each interval and only while somebody looks.

// person is a connection, and who speaks on it.
type person struct {
	Identifier    rdma.Handle
	Nick, Room    string // "": no hello has come yet
	Identity      string // whom its key or certificate belongs to. "": it is not secured
	Peer          rdma.Addr
	LinesWaiting  int // lines that it has not taken
	WaitingBytes  int
	LinesTaken    int
	LinesMissed   int // since the last notice that says so
	LinesRetained int // of its own, beyond its pace
}

// roomRow is a room with somebody in it.
type roomRow struct {
	Room         string
	Members      int
	LinesWaiting int // for all of them
	Who          string
}

// census asks the server for its people.
type census struct{ answer chan<- []person } // has room for the answer

// people is the answer to a census.
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

// sectionsOf are the page's tables of a server's people and rooms. They are empty when ctx ends.
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

// roomsOf sorts people, who come in the order of their names, into rooms.
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
