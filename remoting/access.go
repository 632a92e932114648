package remoting

import (
	"slices"
	"strings"

	"github.com/rdmactor/rdmactor/internal/enum"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// Access is an operation of a peer on an actor, or on a kind.
type Access uint8

// The kinds of access.
const (
	Reach Access = iota + 1 // send it messages
	Watch                   // get Terminated when it ends
	Stop                    // stop it: Stop, and PoisonPill, which is a message, too (Reach)
	Spawn                   // have one of a kind spawned
)

var accessNames = [...]string{"", "reach", "watch", "stop", "spawn"}

// String is the access's name.
func (a Access) String() string { return enum.At(accessNames[:], a, "access %d") }

// MarshalText is String's text.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func (a Access) accessBit() tables.Accesses { return 1 << a }

// Expose lists the operations that peers may do here besides answering the messages that they
// received. A rule is an actor's name ("greeter"), or the beginning of names followed by a star
// ("room/*"); "*" alone is every name. Processes that Proto.Actor or this module has spawned for
// internal use, such as identifiers, match no star: they have to be named in full. Futures are
// never exposed.
type Expose struct {
	Reach []string // names of actors
	Watch []string
	Stop  []string
	Spawn []string // names of Config.Kinds
}

// with returns the rules of both.
func (e Expose) with(more Expose) Expose {
	return Expose{
		Reach: joinRules(e.Reach, more.Reach), Watch: joinRules(e.Watch, more.Watch),
		Stop: joinRules(e.Stop, more.Stop), Spawn: joinRules(e.Spawn, more.Spawn),
	}
}

func joinRules(a, b []string) []string {
	all := slices.Clone(a)
	for _, rule := range b {
		if !slices.Contains(all, rule) {
			all = append(all, rule)
		}
	}
	return all
}

// without returns the rules of e that are not in less.
func (e Expose) without(less Expose) Expose {
	return Expose{
		Reach: removeRules(e.Reach, less.Reach), Watch: removeRules(e.Watch, less.Watch),
		Stop: removeRules(e.Stop, less.Stop), Spawn: removeRules(e.Spawn, less.Spawn),
	}
}

func removeRules(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(rule string) bool { return slices.Contains(b, rule) })
}

// rules are an Expose as it is looked up. They do not change.
type rules struct {
	expose  Expose
	version uint64
}

// allowsAccess reports whether peers may do that.
func (r *rules) allowsAccess(a Access, name string) bool {
	switch a {
	case Reach:
		return matchesRule(r.expose.Reach, name)
	case Watch:
		return matchesRule(r.expose.Watch, name)
	case Stop:
		return matchesRule(r.expose.Stop, name)
	case Spawn:
		return matchesRule(r.expose.Spawn, name)
	}
	return false
}

// matchesRule reports whether one of the rules is for a name.
func matchesRule(list []string, name string) bool {
	own := isInternal(name)
	for _, rule := range list {
		prefix, star := strings.CutSuffix(rule, "*")
		if rule == name || star && !own && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// internals lists the beginnings of the names that Proto.Actor and this module give their internal
// processes.
var internals = []string{
	"rdma$", "remoting$", "rdma-remoting/", "rpc$", "rpc-dead-letters$", "rdmanet$", "reconnect$", "ask$", // ours
	tables.FuturePrefix, "guardian$", "deadletter", "eventstream", // Proto.Actor's
}

// isInternal reports whether a name is none of the application's.
func isInternal(name string) bool {
	return slices.ContainsFunc(internals, func(p string) bool { return strings.HasPrefix(name, p) })
}

// isForbidden reports whether no peer may reach a name: a future whose request was not sent to a
// peer, or a process that panics when it gets a message.
func isForbidden(name string) bool {
	return tables.IsFuture(name) || strings.HasPrefix(name, "guardian$")
}
