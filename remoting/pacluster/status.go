package pacluster

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/metrics"
)

// The events on the actor system's EventStream.
type (
	// Suspended: the provider's server does not answer, nor do some of the members, so the others
	// may have removed this one. It has stopped its grains, and has none until it knows better.
	Suspended struct {
		Silent []string // the names of the members that do not answer
	}
	// Resumed: the reason of a suspension has gone. Grains may be here again.
	Resumed struct{}
	// Expelled: this process is no longer a member. See Member.Expelled.
	Expelled struct {
		By      string // the name of the member that has removed it
		Members int    // of the cluster without it
	}
)

// String is one line for logs.
func (s *Suspended) String() string {
	return fmt.Sprintf("suspended: no answer from the provider's server, and from %v", s.Silent)
}

// String is one line for logs.
func (*Resumed) String() string { return "resumed" }

// String is one line for logs.
func (e *Expelled) String() string {
	return fmt.Sprintf("expelled by %s, of a cluster of %d", e.By, e.Members)
}

// MemberInfo is what Member.Members reports of a member, this one included.
type MemberInfo struct {
	Name    string
	ID      string // of its actor system
	Answers bool   // it answered the latest question; also if it was not asked
	// Missing is how long the provider has not listed it. It is still a member because it answers.
	Missing time.Duration
	// Suspended is true of this process if it has stopped its grains.
	Suspended bool
	// Excludes is true if its own list lacks this process: one of the two will leave.
	Excludes bool
}

// Members returns the members as this process knows them, for a section of the inspection page:
//
//	inspect.Rows("members", "Cluster members", member.Members)
func (m *Member) Members() (all []MemberInfo) {
	g := m.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Since(g.started)
	for _, id := range sortedKeys(g.rules.members) {
		s := g.rules.members[id]
		info := MemberInfo{Name: s.member.Address(), ID: id, Answers: s.failed <= s.answered}
		if s.missing {
			info.Missing = now - s.since
		}
		if c := g.rules.claims[id]; c != nil {
			info.Excludes = c.excluded
		}
		info.Suspended = id == m.sys.ID && m.suspended.Load()
		all = append(all, info)
	}
	return all
}

// Counts returns the numbers of the members as this process knows them, for metrics.Config.Cluster.
// Any goroutine may call it.
func (m *Member) Counts() (c metrics.Cluster) {
	all := m.Members()
	c.Members = len(all)
	for i := range all {
		if !all[i].Answers {
			c.Silent++
		}
		if all[i].Missing > 0 {
			c.Missing++
		}
	}
	c.Suspended = m.suspended.Load()
	select {
	case <-m.expelled:
		c.Expelled = true
	default:
	}
	return c
}

// logMissing logs when the provider begins to miss members that answer, and when it no longer does.
func (m *Member) logMissing(missing, before []string) {
	switch {
	case len(missing) > 0 && len(before) == 0:
		m.sys.Logger().Warn("pacluster: the provider does not list members that answer; they stay for now", "missing", missing)
	case len(missing) == 0 && len(before) > 0:
		m.sys.Logger().Info("pacluster: the provider misses no member that answers", "missed", before)
	}
}
