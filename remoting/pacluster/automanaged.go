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
	// defaultSilence is Silence if it is zero.
	defaultSilence = 5 * time.Second
)

// Automanaged is a provider that needs no server, as Proto.Actor's of that name: each member
// answers a small HTTP request, and asks all others each Refresh whether they do.
//
// Proto.Actor blocks a member forever once its provider has not found it. So this provider gives a
// member up immediately only if no process listens at its address. Otherwise it repeats its
// requests for the time of Silence. Time in which this process itself stood still, or got no
// processor time, does not count, apart from a fiftieth of Silence for each pause: so it does not
// take all others for lost afterwards. Each member is asked separately, and one that does not
// answer delays no other.
type Automanaged struct {
	// Listen is where this member answers.
	Listen string
	// Members are where all members answer, the same list for each. This one's Listen may be among
	// them.
	Members []string
	// Refresh is the interval at which all members are asked. 0: each 500 ms. A killed member is
	// found within it.
	Refresh time.Duration
	// Silence is how long requests to a member may stay without an answer until it is given up. 0:
	// 5 s.
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
