package swarm

import "github.com/rdmactor/rdmactor/internal/sim/workload"

// kinds are the workloads that a plan may have. The order matters: a seed names them by number.
var kinds = []*workload.Kind{
	workload.Echo,
}
