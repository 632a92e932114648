package pacluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// The times of the rules. Times are durations since the member's start, on its clock.
const (
	// askEvery is the interval between questions to a member whose presence is in doubt.
	askEvery = time.Second
	// holdFor is how long a member that answers stays one although the provider no longer lists it.
	// It is longer than the longest pause of gRPC's clients, such as etcd's, between attempts to
	// connect.
	holdFor = 150 * time.Second
	// holdForJoined is the same after another process has joined, which knows only those listed.
	holdForJoined = 10 * time.Second
	// heldFor is how long a member that was removed although it answered counts among the missing.
	heldFor = 10 * time.Minute
	// settleFor is how long a list of members is unchanged before it counts in a dispute.
	settleFor = 2 * time.Second
	// overheardFor is how long another member's list must lack this member, as gossip shows it, to
	// count as a claim. Gossip is late where a goodbye is not.
	overheardFor = 10 * time.Second
	// claimFor is how long a claim lasts without being repeated.
	claimFor = 15 * time.Second
	// leaveFor is how long a departed member that has left may still refuse this one. If it does so
	// later, it has not left.
	leaveFor = 30 * time.Second
	// mostDeparted is how many removed members are remembered: those that the provider lists, which
	// would be taken for new ones otherwise, and the latest of the others.
	mostDeparted = 64
)

// rules decide which processes are members, whether this one may have grains, and when it has to
// leave. They are a state machine without a clock, network or goroutine: its methods take
// observations, and decideActions returns the actions. Members are known by the ids of their actor
// systems, so a process that is restarted at the same address is another member.
//
//   - A member that the provider no longer lists is asked over its link whether it is there. One
//     that answers stays for holdFor, because it may just have to register again after an outage of
//     the provider; if others join in that time, for holdForJoined. If half of the members or more
//     are missing and answer, the provider is at fault, and they stay as long as that lasts.
//   - A member that has left, as gossip contains, is asked in the same way.
//   - If one of two members has removed the other, the removed one leaves, unless more members are
//     with it than with the other. If both have removed each other, the smaller side leaves; of
//     equal sides the one without the smallest name. Each waits until both lists have settled.
//   - Without contact to the provider's server, a member stops its grains before its registration
//     expires, unless all other members answer: then the server is down for all, or they would have
//     removed it.
type rules struct {
	id, name string
	ttl      time.Duration // of the registration at the provider's server; 0: not observed

	members  map[string]*standing
	departed []*standing // the latest last
	changed  time.Duration
	outage   time.Duration // when half of the members were last missing
	doubted  time.Duration // when one that the provider lists last asked whether this one is there
	claims   map[string]*claim
	listing  map[string]bool // members whose lists have had this one

	contact, contactSince time.Duration // the latest, and the first without a gap
	suspended             bool
}

// standing describes a member, or one that has departed.
type standing struct {
	member   *cluster.Member
	joined   time.Duration // when the provider first listed it
	missing  bool          // the provider does not list it
	leaving  bool          // gossip contains that it has left, and it has not answered since
	left     time.Duration // of a departed one, when gossip first contained that; -1: never
	held     bool          // it answered when it was removed
	since    time.Duration // when that began; of a departed one, when it was removed
	asked    time.Duration // when the latest question was asked; -1: never
	answered time.Duration // when the latest question that was answered was asked; -1: never
	failed   time.Duration // when the latest question that was not answered was asked; -1: never
}

// side is one side of a dispute.
type side struct {
	size   int
	leader string // the smallest name
	// settled is true if its list has not changed for settleFor.
	settled bool
}

// claim is a dispute about membership with another member.
type claim struct {
	by, name string
	side     side
	list     string // the other's members, in order; of a claim by gossip
	direct   bool   // the other has refused this member, as one that it has removed
	excluded bool   // this member is not in its list

	since     time.Duration // when excluded began
	unchanged time.Duration // since when list is the same
	heard     time.Duration // when the other was last known to live
}

// decision lists actions.
type decision struct {
	members   cluster.Members // the current members
	ask       []*cluster.Member
	missing   []string // the names of those that are members only because they answer
	suspended bool
	leave     *claim // not nil: this member has to leave the cluster because of it
}

func newRules(id, name string, ttl time.Duration) *rules {
	return &rules{
		id: id, name: name, ttl: ttl, members: make(map[string]*standing), claims: make(map[string]*claim), listing: make(map[string]bool),
		changed: -settleFor, outage: -holdFor, doubted: -2 * askEvery,
	}
}

// plainID returns the id of a member's actor system. Some providers, such as etcd's, put the
// cluster's name before it.
func plainID(id string) string { return id[strings.LastIndexByte(id, '@')+1:] }

// providerListed takes note of all members that the provider lists.
func (r *rules) providerListed(now time.Duration, list cluster.Members) {
	listed, at := make(map[string]bool), make(map[string]bool)
	for _, m := range list {
		id := plainID(m.Id)
		listed[id], at[m.Address()] = true, true
		if r.members[id] == nil && r.findDeparted(id) == nil {
			r.members[id] = &standing{member: m, joined: now, asked: -1, answered: -1, failed: -1, left: -1}
			r.changed = now
		}
	}
	for _, s := range r.departed {
		s.missing = !listed[plainID(s.member.Id)]
	}
	for id, s := range r.members {
		switch {
		case listed[id] || id == r.id:
			s.missing = false
		case at[s.member.Address()]: // another process has its address now
			r.removeMember(now, id)
		case !s.missing:
			s.missing, s.since = true, now
		}
	}
}

// memberAnswered takes note of the outcome of a question that was asked at some time.
func (r *rules) memberAnswered(asked time.Duration, id string, present bool) {
	s := r.members[plainID(id)]
	switch {
	case s == nil:
	case present:
		s.answered = max(s.answered, asked)
	default:
		s.failed = max(s.failed, asked)
	}
}

// presenceAsked takes note that the node of a name has asked this one whether it is there. One that
// the provider itself does not list asks all, for as long as it is out of contact.
func (r *rules) presenceAsked(now time.Duration, by string) {
	if s := r.members[r.idAt(by)]; s != nil && !s.missing {
		r.doubted = now
	}
}

// memberLeft takes note that gossip contains that a member has left the cluster. Any other member
// may have made that up, so the member is asked, and is removed if it does not answer. The claims
// of a departed member do not count while it may be leaving.
func (r *rules) memberLeft(now time.Duration, id string) {
	id = plainID(id)
	if s := r.members[id]; s != nil && !s.missing && !s.leaving {
		s.leaving, s.since = true, now
	}
	if s := r.findDeparted(id); s != nil && s.left < 0 {
		s.left = now
	}
}

// memberBlocked takes note that Proto.Actor has blocked a member for good.
func (r *rules) memberBlocked(now time.Duration, id string) { r.removeMember(now, plainID(id)) }

// providerContacted takes note that the provider's server has answered a request made at some time.
func (r *rules) providerContacted(asked time.Duration) {
	if asked-r.contact > r.ttl/2 {
		r.contactSince = asked
	}
	r.contact = max(r.contact, asked)
}

// memberClaimed takes note of another member's list, which is known by its goodbye or by gossip. Of
// a claim by gossip, heard is when the other's latest sign of life arrived.
func (r *rules) memberClaimed(now time.Duration, c claim) {
	c.by = plainID(c.by)
	known, departed := r.members[c.by], r.findDeparted(c.by)
	old := r.claims[c.by]
	switch {
	case c.by == r.id || known == nil && departed == nil:
		return
	case !c.direct && !c.excluded && known != nil:
		r.listing[c.by] = true
		if old == nil || !old.direct {
			delete(r.claims, c.by)
		}
		return
	case c.direct:
		c.heard = now
	case old != nil && old.direct: // gossip is older than a goodbye
		return
	case known != nil && !r.listing[c.by]: // it does not know this member yet
		return
	case departed != nil && c.heard < departed.since+settleFor: // from before it was removed
		return
	}
	c.since, c.unchanged = now, now
	if old != nil && old.excluded == c.excluded && old.direct == c.direct {
		c.since = old.since
	}
	if old != nil && old.list == c.list {
		c.unchanged = old.unchanged
	}
	if !c.direct {
		c.side.settled = now-c.unchanged >= settleFor
	}
	r.claims[c.by] = &c
}

// decideActions returns the actions that are due.
func (r *rules) decideActions(now time.Duration) (d decision) {
	r.judgeMissing(now)
	d.leave = r.judgeClaims(now)
	r.judgeContact(now)
	for _, id := range sortedKeys(r.members) {
		s := r.members[id]
		d.members = append(d.members, s.member)
		if s.missing && s.answered >= s.since {
			d.missing = append(d.missing, s.member.Address())
		}
		if wait, wanted := r.askWait(now, id); wanted && (s.asked < 0 || now-s.asked >= wait) {
			s.asked = now
			d.ask = append(d.ask, s.member)
		}
	}
	d.suspended = r.suspended
	return d
}

// askWait returns how often a member has to be asked whether it is there.
func (r *rules) askWait(now time.Duration, id string) (time.Duration, bool) {
	s := r.members[id]
	switch {
	case id == r.id:
		return 0, false
	case r.withoutContact(now, 3) || r.suspended:
		return r.ttl / 8, true
	case (s.missing || s.leaving) && s.asked < s.since:
		return 0, true
	case s.missing || s.leaving || len(r.claims) > 0:
		return askEvery, true
	}
	return 0, false
}

// judgeMissing removes the members that the provider does not list, or that have left as gossip
// contains, if they do not answer, and those that are held no longer.
func (r *rules) judgeMissing(now time.Duration) {
	held, before := 0, len(r.members)
	for id, s := range r.members {
		switch {
		case !s.missing && !s.leaving:
		case s.failed >= s.since && s.failed > s.answered:
			r.removeMember(now, id)
		case s.answered < s.since:
		case s.missing:
			held++
		default:
			s.leaving = false
		}
	}
	for _, s := range r.departed { // else many would be removed a few at a time
		if s.held && now-s.since < heldFor {
			held++
			before++
		}
	}
	// The provider lists this one for itself in any case.
	if held > 0 && now-r.doubted < 2*askEvery {
		held++
	}
	if held > 0 && 2*held >= before {
		r.outage = now
	}
	latest := time.Duration(0)
	for _, s := range r.members {
		latest = max(latest, s.joined)
	}
	for id, s := range r.members {
		begun, hold := max(s.since, r.outage), holdFor
		if latest > s.since {
			begun, hold = max(begun, latest), holdForJoined
		}
		if s.missing && s.answered >= s.since && now-begun >= hold {
			s.held = true
			r.removeMember(now, id)
		}
	}
}

// judgeClaims settles the disputes, and returns the claim for which this member has to leave.
func (r *rules) judgeClaims(now time.Duration) *claim {
	for _, id := range sortedKeys(r.claims) {
		c, known, departed := r.claims[id], r.members[id], r.findDeparted(id)
		switch {
		case known == nil && departed == nil, now-c.heard > claimFor, departed != nil && departed.left >= 0 && c.heard < departed.left+leaveFor:
			delete(r.claims, id)
			continue
		case !c.direct && now-c.heard >= settleFor: // it may have ended
			continue
		case !c.direct && known != nil && known.answered >= c.since && now-known.answered < overheardFor:
			continue // others pass its list on, and it does not refuse this member
		case !c.excluded || r.knowsBetter(now, known, departed) || !c.side.settled || now-r.changed < settleFor:
			continue
		}
		switch {
		case known == nil: // each has removed the other
			if r.mustYield(c) {
				return c
			}
		case c.direct && now-c.since < settleFor, !c.direct && now-c.since < overheardFor:
		case r.supportersOf(c).size <= c.side.size:
			return c
		default:
			r.removeMember(now, id)
		}
	}
	return nil
}

// supportersOf returns this member's side in a dispute with one that has removed it: the members
// that have answered since, and have not removed it.
func (r *rules) supportersOf(c *claim) side {
	return r.sideOf(func(id string, s *standing) bool {
		other := r.claims[id]
		return id != c.by && s.answered >= c.since && (other == nil || !other.excluded)
	})
}

// knowsBetter reports whether the provider settles the dispute with a member: this one is in
// contact with its server, which does not list the other.
func (r *rules) knowsBetter(now time.Duration, known, departed *standing) bool {
	other := cmp.Or(known, departed)
	return r.ttl > 0 && !r.withoutContact(now, 2) && other.missing
}

// mustYield reports whether this member's side is the one that leaves. The other side comes to the
// opposite result.
func (r *rules) mustYield(c *claim) bool {
	mine := r.sideOf(func(string, *standing) bool { return true })
	return cmp.Or(cmp.Compare(c.side.size, mine.size), cmp.Compare(mine.leader, c.side.leader), cmp.Compare(r.name, c.name)) > 0
}

// judgeContact decides whether this member may have grains.
func (r *rules) judgeContact(now time.Duration) {
	switch {
	case r.ttl == 0:
	case r.withoutContact(now, 2):
		r.suspended = !r.allAnswer(now)
	case r.suspended: // the others refuse a member that they have removed, within that time
		r.suspended = now-r.contactSince < r.ttl
	}
}

// withoutContact reports whether the provider's server has not answered for a part of the ttl.
func (r *rules) withoutContact(now time.Duration, part int) bool {
	return r.ttl > 0 && now-r.contact >= r.ttl/time.Duration(part)
}

// allAnswer reports whether all other members have just answered.
func (r *rules) allAnswer(now time.Duration) bool {
	for id, s := range r.members {
		if id != r.id && (s.answered < 0 || now-s.answered > r.ttl/3) {
			return false
		}
	}
	return true
}

// ownSide returns this member's side, as its messages contain it.
func (r *rules) ownSide(now time.Duration) side {
	s := r.sideOf(func(string, *standing) bool { return true })
	s.settled = now-r.changed >= settleFor
	return s
}

// sideOf returns the side of this member with those that are with it.
func (r *rules) sideOf(with func(id string, s *standing) bool) side {
	s := side{size: 1, leader: r.name}
	for id, other := range r.members {
		if id != r.id && with(id, other) {
			s.size++
			s.leader = min(s.leader, other.member.Address())
		}
	}
	return s
}

func (r *rules) removeMember(now time.Duration, id string) {
	s := r.members[id]
	if s == nil || id == r.id {
		return
	}
	delete(r.members, id)
	delete(r.listing, id)
	s.since, r.changed = now, now
	r.departed = append(r.departed, s)
	if len(r.departed) > mostDeparted {
		oldest := slices.IndexFunc(r.departed, func(s *standing) bool { return s.missing })
		r.departed = slices.Delete(r.departed, max(oldest, 0), max(oldest, 0)+1)
	}
}

// idAt returns the id of the member at an address, also of one that has departed; "": none.
func (r *rules) idAt(addr string) (id string) {
	for _, s := range r.departed {
		if s.member.Address() == addr {
			id = plainID(s.member.Id)
		}
	}
	for known, s := range r.members {
		if s.member.Address() == addr {
			id = known
		}
	}
	return id
}

// isAt reports whether a member, which may have departed, is at an address.
func (r *rules) isAt(id, addr string) bool {
	s := cmp.Or(r.members[plainID(id)], r.findDeparted(plainID(id)))
	return s != nil && s.member.Address() == addr
}

// findDeparted returns a departed member; nil: none.
func (r *rules) findDeparted(id string) *standing {
	for _, s := range r.departed {
		if plainID(s.member.Id) == id {
			return s
		}
	}
	return nil
}

// lostAddresses returns where departed members were, and no member is now.
func (r *rules) lostAddresses() (all []string) {
	for _, s := range r.departed {
		addr := s.member.Address()
		if !slices.Contains(all, addr) && !r.isMemberAt(addr) {
			all = append(all, addr)
		}
	}
	return all
}

func (r *rules) isMemberAt(addr string) bool {
	for _, s := range r.members {
		if s.member.Address() == addr {
			return true
		}
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
