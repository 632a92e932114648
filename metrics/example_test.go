package metrics_test

import (
	"context"
	"fmt"
	"log"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/metrics"
)

// A reading without a monitoring system.
func Example() {
	ctx := context.Background()
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(ctx)
	source := metrics.New(metrics.Config{Runtime: rt})
	for _, s := range source.Read(ctx) {
		if s.Name() == "rdmactor_loop_blocked" {
			fmt.Println(s.Name(), s.Labels, s.Values, s.Value)
		}
	}
	// Output: rdmactor_loop_blocked [loop] [rdma-0] 0
}
