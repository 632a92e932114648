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
  Shows the page (package inspect) of a running program in a terminal, as often as the page has news; HOST:PORT is the page at its
  usual path. Above: identifiers by state, each loop's busy share and who blocks it, memory by pool. Below: a table of identifiers.
  If the program does not answer, it says so, keeps what was there, and tries again.

  Without a terminal, or with --once, it prints one snapshot as text; rates are those between two answers.

KEYS
  arrows, j k      move; beyond the last row comes the next page
  PgUp PgDn space  pages; g and G: the first and the last one
  s S              sort by the next field, or the one before; r: the other way round
  /                filter: a text in any name or address; Esc: no filter
  Enter            one identifier and its history; q or Esc: back
  Tab              the program's own tables, one after the other: calls, links, peers, whatever its page has
  q Ctrl-C         quit; Ctrl-Z: the shell, as usual

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
