package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/kernel"
	"github.com/rdmactor/rdmactor/internal/cli"
)

const idsUsage = `NAME
  rdmactor ids - the identifiers of a program, or of the kernel

SYNOPSIS
  rdmactor ids URL [--filter TEXT] [--state STATES] [--sort FIELD] [--desc] [--json]
  rdmactor ids [--filter TEXT] [--sort FIELD] [--desc] [--pid PID] [--json]
  rdmactor ids URL --kernel [--filter TEXT] [--pid PID] [--json]

DESCRIPTION
  With a URL: the identifiers of the program whose page (package inspect) is there; HOST:PORT is the page at its usual path. Without:
  those that this host's kernel has on its devices, of all programs, as rdma resource show cm_id has them.

  --kernel joins both, by device and by both addresses. WHO is "both"; "differ", if they have it in different states; "program", if
  the kernel has the device and not the identifier; "kernel", if the program has it not, because it is another process's or because it
  was lost (--pid has the kernel's table show one process only); "apart", if it is no matter of the kernel's: it has no device, or the
  embedded one. A listener at every address is one of the program's and one on each of the kernel's devices. The two tables are read
  one after the other: what comes and goes meanwhile differs. The program must run on this host.

  The kernel knows the thread that has made an identifier, and forgets it when it ends (pid in JSON); PID is its process.

  What a terminal would interpret in a name is escaped, in JSON too.

EXAMPLES
  rdmactor ids localhost:8080 --sort waits_for_seconds --desc
  rdmactor ids localhost:8080 --kernel --pid $(pidof chat)
  rdmactor ids --json

FLAGS
`

// idsFlags are the values of the flags.
type idsFlags struct {
	address            string // of a page; "": the kernel's table
	kernel, json, desc bool
	filter, state      string
	sort               string
	pid                uint
}

func parseIDs(args []string, stdout io.Writer) (o idsFlags, err error) {
	f := flag.NewFlagSet("rdmactor ids", flag.ContinueOnError)
	f.BoolVar(&o.kernel, "kernel", false, "join the program's identifiers with the kernel's")
	f.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	f.StringVar(&o.filter, "filter", "", "only those with `TEXT` in a name or an address")
	f.StringVar(&o.state, "state", "", "only those in `STATES` such as connected,listening")
	f.StringVar(&o.sort, "sort", "", "sort by `FIELD`, a name of the JSON (default id; of the kernel's ifname)")
	f.BoolVar(&o.desc, "desc", false, "sort the other way round")
	f.UintVar(&o.pid, "pid", 0, "of the kernel's only those of process `PID`")
	rest, err := cli.Parse(f, idsUsage, args, stdout)
	if err != nil {
		return o, err
	}
	if o.address, err = oneAddress(f, rest); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o *idsFlags) check() error {
	switch {
	case o.kernel && o.address == "":
		return errors.New("--kernel joins the kernel's table with a program's: rdmactor ids URL --kernel")
	case o.pid != 0 && o.address != "" && !o.kernel:
		return errors.New("--pid is for the kernel's table: without URL, or with --kernel")
	case o.pid > math.MaxUint32:
		return fmt.Errorf("--pid %d: there is no such process", o.pid)
	case o.state != "" && o.address == "":
		return errors.New("--state is for a program's identifiers; the kernel's states are found by --filter")
	case o.state != "" && o.kernel:
		return errors.New("--state and --kernel: the kernel does not know these states; see --filter")
	case o.sort != "" && o.address == "" && kernel.Order(nil, o.sort, false) != nil:
		return fmt.Errorf("--sort %q: want one of %s", o.sort, kernel.Fields)
	}
	return nil
}
