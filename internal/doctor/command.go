package doctor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/verbs"
)

// Linked is the command in the repository that has libibverbs linked in.
const Linked = "`go -C native run ./adapter doctor`"

// Config describes the program that runs the doctor.
type Config struct {
	Name string // of the program and its command: "rdmactor doctor"
	// Provider opens devices; nil: verbs/uverbs, as in ucm.Config.
	Provider verbs.Provider
	// Library examines libibverbs; nil: it is not linked in.
	Library func() Library
	// Remedy returns a remedy for an error of Provider or of libibverbs, "" if it knows none. nil:
	// no remedies.
	Remedy func(error) string
}

const usage = `NAME
  %[1]s - this machine's RDMA devices, and what is missing

SYNOPSIS
  %[1]s [--json]

DESCRIPTION
  Examines device files, kernel modules, each RDMA device with its ports and
  GIDs, and the limits of this process. Opens each device as a program does,
  registers memory on it, and closes it again. Nothing is changed, but the
  kernel may load rdma_ucm.

  The report ends with what is missing, the worst first, each with a remedy.

  The status is 0 if a device is usable: connections can be made, its data path
  opens, it has an active port and an address. Otherwise it is 1.

FLAGS
`

// ErrUnusable means that no device is usable.
var ErrUnusable = errors.New("no RDMA device is usable here: the way out is above; the embedded device (--device iwarp) needs none")

// Command runs the command line. The error is ErrUnusable when no device is usable.
func Command(ctx context.Context, cfg Config, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet(cfg.Name, flag.ContinueOnError)
	asJSON := f.Bool("json", false, "print JSON instead of text")
	if err := cli.ParseFlags(f, fmt.Sprintf(usage, cfg.Name), args, stdout); err != nil {
		return err
	}
	r, err := Look(ctx, cfg)
	if err != nil {
		return err
	}
	if *asJSON {
		err = plain.WriteJSON(stdout, r)
	} else {
		err = r.WriteText(stdout)
	}
	if err == nil && !r.Usable {
		err = ErrUnusable
	}
	return err
}

// Look examines this machine.
func Look(ctx context.Context, cfg Config) (*Report, error) {
	r, err := examineHost(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r.Program = cli.Version(cfg.Name)
	r.judgeDevices()
	return r, nil
}
