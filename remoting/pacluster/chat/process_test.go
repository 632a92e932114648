package main

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/proctest"
)

// patience is how long an expected line may take on a busy machine.
const patience = 2 * time.Minute

// process is one member of the chat, in a separate process, which runs this test binary as the
// chat.
type process struct {
	*proctest.Process
	t    *testing.T
	name string // the member's; "": the first free one
	nick string
	all  []string
}

// freeMembers returns names of members that are free, with their ports for HTTP.
func freeMembers(t *testing.T, n int) (names []string) {
	t.Helper()
	return proctest.FreeAddrs(t, n, healthPort)
}

func config(t *testing.T, all []string, name, nick string, more ...string) proctest.Config {
	args := append([]string{"--members", strings.Join(all, ","), "--nick", nick}, more...)
	if name != "" {
		args = append(args, name)
	}
	return proctest.Config{Args: args, Env: []string{asChat + "=1", proctest.LogRaces(t)}}
}

func start(t *testing.T, all []string, name, nick string, more ...string) *process {
	t.Helper()
	return &process{proctest.Start(t, nick, config(t, all, name, nick, more...)), t, name, nick, all}
}

// sawNot checks the lines that no Want has consumed.
func (p *process) sawNot(texts ...string) {
	p.t.Helper()
	for _, l := range p.Seen {
		for _, text := range texts {
			if strings.Contains(l, text) {
				p.t.Errorf("%s saw %q", p.nick, l)
			}
		}
	}
}

// three starts three members with these flags, each with one person, and waits until all see one
// another in the lobby.
func three(t *testing.T, flags ...string) (people []*process) {
	t.Helper()
	all := freeMembers(t, 3)
	for i, nick := range []string{"ann", "bob", "cat"} {
		people = append(people, start(t, all, all[i], nick, flags...))
	}
	for _, p := range people {
		p.Want("you are "+p.nick+" in lobby", "it has joined")
	}
	together(people...)
	return people
}

// together waits until all are members of one cluster, in one room.
func together(people ...*process) {
	for _, p := range people {
		p.t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			p.Say("/who")
			line := p.Want("* in ", "who is there")
			if strings.Count(line, ",") == len(people)-1 {
				break
			}
			if time.Now().After(deadline) {
				p.t.Fatalf("%s sees %q", p.nick, line)
			}
		}
	}
}

// split returns the person whose process has the room, and the others.
func split(people []*process) (host *process, others []*process) {
	people[0].t.Helper()
	people[0].Say("/where")
	line := people[0].Want("-- lobby is at ", "where the room is")
	for _, p := range people {
		if strings.Contains(line, "lobby is at "+p.name+",") {
			host = p
		} else {
			others = append(others, p)
		}
	}
	if host == nil {
		people[0].t.Fatalf("nobody has the room: %q", line)
	}
	return host, others
}
