package actor

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// addressOwner is the actor of an identifier that dials. renews is how many identifiers it gets.
type addressOwner struct {
	dialer
	renews    int
	destroyed error
}

func (o *addressOwner) renewID() error {
	if o.renews--; o.renews < 0 {
		return unix.EMFILE
	}
	return nil
}

func (o *addressOwner) destroyID(cause error) { o.destroyed = cause }

// A Dial tries the addresses in their order, and a new identifier for each but the first, until one
// works or the application of one rejects: that is an answer. Of several failures it reports the
// last of those that have got as far as the connect, since the others say less about the peer.
func TestAttempts(t *testing.T) {
	failed := func(cmd Command) cmid.FailureBase { return cmid.FailureBase{Command: cmd, Err: unix.EHOSTUNREACH} }
	outcomes := map[string]func() Event{
		"no address": func() Event { return &cmid.AddrError{FailureBase: failed(new(cmid.ResolveAddr))} },
		"no route":   func() Event { return &cmid.RouteError{FailureBase: failed(new(cmid.ResolveRoute))} },
		"away":       func() Event { return &cmid.Unreachable{FailureBase: failed(new(cmid.Connect))} },
		"not there": func() Event {
			return &cmid.Rejected{FailureBase: failed(new(cmid.Connect)), Reason: cmid.RejectInvalidServiceID}
		},
		"rejected": func() Event {
			return &cmid.Rejected{FailureBase: failed(new(cmid.Connect)), Reason: cmid.RejectConsumerDefined}
		},
		"works": func() Event { return &cmid.Established{} },
	}
	for _, c := range []struct {
		outcomes []string // of the addresses
		renews   int
		tried    int
		answer   int // whose outcome is the answer; -1: CommandFailed
	}{
		{[]string{"works", "no address"}, 1, 1, 0},
		{[]string{"no address", "away", "works"}, 2, 3, 2},
		{[]string{"no address", "no route"}, 1, 2, 1},
		{[]string{"away", "no address", "no route"}, 2, 3, 0},
		{[]string{"away", "no address", "not there"}, 2, 3, 2},
		{[]string{"no address", "rejected", "works"}, 2, 2, 1},
		{[]string{"no address", "works"}, 0, 1, -1},
	} {
		t.Run(strings.Join(c.outcomes, ", "), func(t *testing.T) {
			owner := &addressOwner{renews: c.renews}
			table := new(commandTable)
			table.id = new(cmid.ID)
			var answers, tried []Event
			a := &attempts{table: table, of: owner, p: table.id.Expect(&Dial{}, func(ev Event) { answers = append(answers, ev) })}
			table.attempts = a
			a.try = func(ai cmid.AddrInfo) {
				ev := outcomes[string(ai.Connect)]()
				tried = append(tried, ev)
				a.handleAnswer(ev)
			}
			addrs := make([]cmid.AddrInfo, len(c.outcomes))
			for i, o := range c.outcomes {
				addrs[i].Connect = []byte(o)
			}
			a.takeAddrs(addrs, nil)
			if len(tried) != c.tried || len(answers) != 1 {
				t.Fatalf("tried %v, want %d; %d answers", tried, c.tried, len(answers))
			}
			if c.answer >= 0 && answers[0] != tried[c.answer] {
				t.Errorf("answered with %v, want %v", answers[0], tried[c.answer])
			}
			f, failed := answers[0].(Failure)
			if _, ok := f.(*cmid.CommandFailed); ok != (c.answer < 0) {
				t.Errorf("answered with %v", answers[0])
			}
			if failed != (owner.destroyed != nil) {
				t.Errorf("%v: the identifier was destroyed because of %v", answers[0], owner.destroyed)
			}
			if failed {
				if _, ok := f.Failed().(*Dial); !ok {
					t.Errorf("the answer is to %T, want the Dial", f.Failed())
				}
			}
		})
	}
}
