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
  rdmactor ids URL [--filter TEXT] [--state STATES] [--sort FIELD] [--desc]
                   [--json]
  rdmactor ids [--filter TEXT] [--sort FIELD] [--desc] [--pid PID] [--json]
  rdmactor ids URL --kernel [--filter TEXT] [--pid PID] [--json]

DESCRIPTION
  With a URL, prints the identifiers of the program with that live page (package
  inspect). URL may be HOST:PORT if the page has its usual path, /debug/rdma/.
  Without a URL, prints those on the devices of this host's kernel, of all
  programs, as rdma resource show cm_id does.

  --kernel joins both by device and addresses. The column WHO has

    both     both have it, in the same state
    differ   both have it, in different states
    program  the kernel does not have it, but has the device
    kernel   the program does not have it: it belongs to another process (--pid
             selects one), or was lost
    apart    it is not the kernel's: it has no device, or the embedded one

  A listener at every address is one identifier of the program, and one on each
  device of the kernel. The two tables are read one after the other, so what
  changes in between differs. The program must run on this host.

  The kernel records the thread that created an identifier until that thread
  ends (pid in JSON). PID is its process.

  Characters of a name that a terminal would interpret are escaped, in JSON too.

EXAMPLES
  rdmactor ids localhost:8080 --sort trouble --desc
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
	f.StringVar(&o.state, "state", "", "only those in these `STATES`, such as connected,listening")
	f.StringVar(&o.sort, "sort", "", "sort by `FIELD`, a name in the JSON (default id; of the kernel's ifname)")
	f.BoolVar(&o.desc, "desc", false, "reverse the order")
	f.UintVar(&o.pid, "pid", 0, "only those of the kernel's that belong to process `PID`")
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
