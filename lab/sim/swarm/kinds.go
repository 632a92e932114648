package swarm

import (
	"slices"

	"github.com/rdmactor/rdmactor/lab/sim/workload"
)

// kinds are the workloads that a plan may contain. The order matters, because a seed selects them
// by number.
var kinds = []*workload.Kind{
	workload.Connections, workload.Calls, workload.Streams, workload.Lives, workload.Remote,
}

// chooseKinds returns the kinds with the given names, or all if there are none.
func chooseKinds(names []string) []*workload.Kind {
	if len(names) == 0 {
		return kinds
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(k *workload.Kind) bool {
		return !slices.Contains(names, k.Name)
	})
}

// Known reports whether there is a workload with a name.
func Known(name string) bool { return len(chooseKinds([]string{name})) > 0 }
