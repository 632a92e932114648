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
  rdmactor top URL [--filter TEXT] [--sort FIELD] [--desc] [--once] [--rows NUMBER]

DESCRIPTION
  Shows the page (package inspect) of a running program in a terminal until Ctrl-C, as often as the page has news; HOST:PORT is the
  page at its usual path. Above: identifiers by state, each loop's busy share and what blocks it, memory by pool. Below: the first
  identifiers, as many as there is room for. If the program does not answer, the last data stay. One identifier's history and the
  program's own tables are in the page itself, for a browser or curl.

  Without a terminal, or with --once, it prints one snapshot as text; rates are those between two answers.

EXAMPLES
  rdmactor top localhost:8080
  rdmactor top http://localhost:8080/debug/rdma/ --sort waits_for_seconds --desc --once

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
	f.StringVar(&o.query.Sort, "sort", "id", "sort by `FIELD`, a name of the page's JSON")
	f.BoolVar(&o.query.Descending, "desc", false, "sort the other way round")
	f.BoolVar(&o.once, "once", false, "print one snapshot as text")
	f.IntVar(&o.query.Size, "rows", onceRows, "`NUMBER` of identifiers in a snapshot, at most 500")
	rest, err := cli.Parse(f, topUsage, args, stdout)
	if err != nil {
		return o, err
	}
	if o.address, err = oneAddress(f, rest); err != nil {
		return o, err
	}
	switch {
	case o.address == "":
		return o, errors.New("whose page? rdmactor top URL")
	case o.query.Size < 1 || o.query.Size > page.MostRows:
		return o, fmt.Errorf("--rows %d: want 1 to %d", o.query.Size, page.MostRows)
	}
	return o, nil
}

// watch runs the command top.
func watch(ctx context.Context, args []string, stdout, _ io.Writer) error {
	o, err := parseTop(args, stdout)
	if err != nil {
		return err
	}
	c, err := page.Open(o.address)
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.once && term.IsTerminal(int(os.Stdout.Fd())) {
		return top.Run(ctx, c, o.query, os.Stdout)
	}
	if err := top.Once(ctx, c, o.query, stdout); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}
