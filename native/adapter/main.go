// Adapter tests this project on an RDMA adapter, through libibverbs; see adapter --help. It is for
// owners of an adapter, and prints a report that they can send.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/doctor"
	"github.com/rdmactor/rdmactor/native"
)

const overview = `adapter: try rdmactor on an RDMA adapter, through libibverbs

  adapter doctor                this machine's RDMA devices, and what is missing
  adapter test [DEVICE|ADDR]    the conformance suite and messages over loopback, on one device, with a report to send

Each takes --help.
`

func main() {
	if runPlanAndExit() {
		return
	}
	cli.Main("adapter", execute)
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("which command? see adapter --help")
	}
	switch args[0] {
	case "doctor":
		return doctor.Command(ctx, doctorConfig(false), args[1:], stdout)
	case "test":
		return runSuites(ctx, args[1:], stdout, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, overview)
		return nil
	}
	return fmt.Errorf("unknown command %q; see adapter --help", args[0])
}

// doctorConfig returns the doctor's configuration. If library is set, libibverbs opens rxe and siw,
// too.
func doctorConfig(library bool) doctor.Config {
	cfg := doctor.Config{Name: "adapter doctor", Library: installedLibrary, Remedy: remedyOf}
	if library {
		cfg.Provider = native.Provider{}
	}
	return cfg
}

// installedLibrary returns the library for the report. A call's error is not a fault of the
// library: its kernel has no devices.
func installedLibrary() doctor.Library {
	l, err := native.Installed()
	out := doctor.Library{File: l.File, Devices: l.Devices, Drivers: l.Drivers}
	if way := remedyOf(err); way != "" {
		out.Error, out.Way = err.Error(), way
	}
	return out
}

func remedyOf(err error) string {
	if e := (*native.LibraryError)(nil); errors.As(err, &e) {
		return e.Remedy
	}
	return ""
}
