// Soak runs real processes on the embedded device under faults, and looks for growth:
//
//	go run ./lab/soak -for 30m
//	go run ./lab/soak -for 20s -quick     # short faults and timeouts; growth is not judged
//
// It needs root and /dev/net/tun. It creates pairs of network namespaces, with a server in one and
// a client in the other: separate processes of this program. They exchange calls, streams of items,
// messages over reconnecting connections, and byte streams, small and large. The link between the
// two is this process, which forwards the packets of two tun devices. It can delay, drop and cut
// where the kernel has no netem, and without ip and tc.
//
// Faults come one after the other, and the seed decides which: kill -9 of a process, which is
// restarted, SIGSTOP, the link cut in both directions or in one, an interface that is down, and a
// machine that vanishes. Delay and loss change with each. There is a pair whose client is killed,
// one whose server is, and one in which both live, so that each side has a survivor. After a while
// the faults pause.
//
// The processes check what they receive, and that each message has one fate. Whether fates are
// true, and whether no call is executed twice, is for the simulation (lab/sim), which sees both
// sides. The parent checks that every kind of work continues soon after each fault, that nothing
// fails while there are no faults, that nothing is left after Shutdown, and that no surviving
// process grows: memory, heap, goroutines, descriptors and identifiers of the last third of the
// time against the first.
//
// Nothing has a name in the system. When the program ends, also by kill -9, its processes and
// namespaces end with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/lab/measure"
)

func main() {
	var r role
	child, err := measure.Role(&r)
	switch {
	case err != nil:
	case child:
		err = runProcess(r)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
		err = soakAll(ctx, os.Args[1:])
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soakAll(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	long := f.Duration("for", 30*time.Minute, "how long")
	seed := f.Uint64("seed", uint64(time.Now().UnixNano()), "of the faults")
	quick := f.Bool("quick", false, "short faults and timeouts, for a soak of less than a minute, which judges no growth")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen := soakPlans(slow, slow.byDefault())
	if *quick {
		chosen = soakPlans(fast, fast)
	}
	return runSoak(ctx, chosen, *seed, *long)
}
