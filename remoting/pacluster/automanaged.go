package pacluster

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

const (
	// defaultRefresh is how often the automanaged provider asks all members.
	defaultRefresh = 500 * time.Millisecond
	// defaultSilence is how long a member may not answer.
	defaultSilence = 5 * time.Second
)

// Automanaged is a provider that needs no server, as Proto.Actor's of that name: each member
// answers a small HTTP request, and asks all others each Refresh whether they do.
//
// Proto.Actor blocks a member for ever once its provider has not found it. So this one blames
// nobody early. Where nobody listens any more, there is no member any more. Else it waits for an
// answer for the time of Silence, which is counted in ticks that this process has seen: one that
// stood still, or got no processor time, takes no other one for lost. It asks each member by
// itself, so that one which does not answer delays nothing, and it never asks itself.
type Automanaged struct {
	// Listen is where this member answers.
	Listen string
	// Members are where all members answer, the same list for each. This one's Listen may be among
	// them.
	Members []string
	// Refresh is how often all are asked. 0: each 500 ms. Who has been killed is found within it.
	Refresh time.Duration
	// Silence is how long a member may give no answer until it is none any more. 0: 5 s.
	Silence time.Duration
}

// Provider returns the provider, for [Config.Provider]. It serves one Start.
func (a Automanaged) Provider() (cluster.ClusterProvider, error) {
	for _, addr := range append([]string{a.Listen}, a.Members...) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("pacluster: automanaged: %w", err)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, fmt.Errorf("pacluster: automanaged: %q: %w", addr, err)
		}
	}
	a.Refresh = cmp.Or(max(a.Refresh, 0), defaultRefresh)
	a.Silence = cmp.Or(max(a.Silence, 0), defaultSilence)
	others := slices.DeleteFunc(slices.Clone(a.Members), func(addr string) bool { return addr == a.Listen })
	slices.Sort(others)
	return newAutomanaged(a, slices.Compact(others)), nil
}
