package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/top"
	"github.com/rdmactor/rdmactor/internal/cli"
)

const topUsage = `NAME
  rdmactor top - a running program's identifiers, loops and memory, live

SYNOPSIS
  rdmactor top URL [--filter TEXT] [--sort FIELD] [--desc] [--once]
                   [--rows NUMBER]

DESCRIPTION
  Shows the live page (package inspect) of a running program in a terminal, and
  refreshes it as often as the page does. URL may be HOST:PORT if the page has
  its usual path, /debug/rdma/.

  The top of the screen has the identifiers by state, the busy share of each
  loop and the actor that blocks it, and the memory by pool. Below is the table
  of identifiers, those in trouble first and in red. If the program does not
  answer, the last data stay, with the error, and top tries again.

  Without a terminal, or with --once, it prints one snapshot as text. Rates are
  those between two answers of the page.

KEYS
` + top.Help + `
EXAMPLES
  rdmactor top localhost:8080
  rdmactor top localhost:8080 --sort waits_for_seconds --desc --once

FLAGS
`

const onceRows = 50

// topFlags are the values of the flags.
type topFlags struct {
	address string
	once    bool
	query   page.Query
}

func parseTop(args []string, stdout io.Writer) (o topFlags, err error) {
	f := flag.NewFlagSet("rdmactor top", flag.ContinueOnError)
	f.StringVar(&o.query.Text, "filter", "", "only identifiers with `TEXT` in a name or an address")
	f.StringVar(&o.query.Sort, "sort", "", "sort by `FIELD`, a name of the page's JSON (default trouble, the worst first)")
	f.BoolVar(&o.query.Descending, "desc", false, "reverse the order")
	f.BoolVar(&o.once, "once", false, "print one snapshot as text")
	f.IntVar(&o.query.Size, "rows", onceRows, "maximum `NUMBER` of identifiers in a snapshot, 1 to 500")
	rest, err := cli.Parse(f, topUsage, args, stdout)
	if err != nil {
		return o, err
	}
	if o.address, err = oneAddress(f, rest); err != nil {
		return o, err
	}
	switch {
	case o.address == "":
		return o, errors.New("whose page? rdmactor top HOST:PORT")
	case o.query.Size < 1 || o.query.Size > page.MostRows:
		return o, fmt.Errorf("--rows %d: want 1 to %d", o.query.Size, page.MostRows)
	}
	return o, nil
}

// runTop runs the command top.
func runTop(ctx context.Context, args []string, stdout, _ io.Writer) error {
	o, err := parseTop(args, stdout)
	if err != nil {
		return err
	}
	c, err := page.Open(o.address)
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.once && term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) {
		return top.Run(ctx, c, o.query, os.Stdin, os.Stdout)
	}
	if err := top.Once(ctx, c, o.query, stdout); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}
