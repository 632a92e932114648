package states_test

import (
	"fmt"

	"github.com/rdmactor/rdmactor/states"
)

// An identifier listens before it is bound, learns why not, and does it in the right order.
func Example() {
	var f states.Flavor // InfiniBand, connected, no device attached
	s := states.Idle
	for _, op := range []states.Op{states.OpListen, states.OpBindAddr, states.OpListen} {
		in := states.Requested(op)
		next, verdict := states.Step(f, s, in)
		fmt.Printf("%v in %v: %v, %v\n", op, s, verdict, next)
		if verdict != states.Allow {
			why := states.Why(f, s, in)
			fmt.Println(why.Errno, why.Text)
		}
		s = next
	}
	s, verdict := states.Step(f, s, states.Occurred(states.KindEstablished))
	fmt.Printf("Established in listening: %v, %v\n", verdict, s)
	// Output:
	// Listen in idle: guard, idle
	// EINVAL not bound: send BindAddr first; the kernel would listen on 0.0.0.0 and a random port (rdma_listen(3))
	// BindAddr in idle: allow, bound
	// Listen in bound: allow, listening
	// Established in listening: ignore, listening
}
