package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const timeUsage = `rdmactor time [flags]
rdmactor time -s [-a HOST[:PORT]] [flags]
rdmactor time -c -a HOST[:PORT] [flags]

Measures how long connections take, step by step: all identifiers take a step
concurrently, and the next step starts when all have finished it. Without -s and
-c it is server and client, on this host. Either side may be cmtime(1) of
rdma-core up to v51, whose rows these are. A server runs until Ctrl-C.

EXAMPLES
  rdmactor time
  rdmactor time -s -a 10.0.0.1
  rdmactor time -c -a 10.0.0.1 -n 1,100

FLAGS
`

var timeCommand = command{
	name: "time", usage: timeUsage, server: "the server only", client: "the client only", port: timePort + "; of both sides a free one",
	addr: "`HOST[:PORT]` to connect to, or to listen on (default of a server: every address, with the kernel's " +
		"devices every IPv4 address; of both sides: one of an RDMA device, or loopback)",
	timeout: "maximum `DURATION` of a step without an answer", patience: 30 * time.Second,
}

// timeFlags are the values of the flags.
type timeFlags struct {
	where
	counts []int // numbers of connections, one run for each
	ids    int   // number in a run without connections; 0: no such run
	json   bool
}

const (
	timePort  = "7471" // the same as cmtime's
	manyIDs   = 10_000
	maxCounts = 50_000 // ports have 16 bits, and the server has half of the runtime's limit
)

func parseTime(args []string, stdout io.Writer) (timeFlags, error) {
	o := timeFlags{counts: []int{1, 100, 1000}, ids: -1}
	f := timeCommand.newFlagSet(&o.where)
	f.Func("n", "`COUNTS` of connections, one run for each (default 1,100,1000)", func(s string) (err error) {
		o.counts, err = parseCounts(s)
		return err
	})
	f.Func("ids", "`COUNT` of identifiers in a last run that only creates, binds and destroys them (default 10000; 0 with -n)", func(s string) (err error) {
		o.ids, err = strconv.Atoi(s)
		if err != nil || o.ids < 0 || o.ids > maxCounts {
			return fmt.Errorf("%q: want a number from 0 to %d", s, maxCounts)
		}
		return nil
	})
	f.BoolVar(&o.json, "json", false, "print JSON instead of tables")
	if err := timeCommand.parseArgs(f, args, stdout); err != nil {
		return o, err
	}
	f.Visit(func(fl *flag.Flag) {
		if fl.Name == "n" && o.ids < 0 {
			o.ids = 0
		}
	})
	if o.ids < 0 {
		o.ids = manyIDs
	}
	return o, o.check()
}

// parseCounts parses a list such as "1,100,1000".
func parseCounts(s string) (list []int, err error) {
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > maxCounts {
			return nil, fmt.Errorf("%q: want numbers from 1 to %d, such as 1,100,1000", word, maxCounts)
		}
		list = append(list, n)
	}
	return list, nil
}

func (o *timeFlags) check() error {
	switch {
	case o.server && o.client:
		return errors.New("-s and -c: choose one, or leave both out to measure on this host alone")
	case o.server && o.json:
		return errors.New("--json: the client measures, not the server")
	case o.source.IsValid() && !o.client:
		return errors.New("-I: only a client (-c) connects from another address")
	case o.timeout < time.Millisecond:
		return fmt.Errorf("--timeout %v: too short", o.timeout)
	}
	otherwise := timePort
	if !o.client && !o.server {
		otherwise = "0"
	}
	return timeCommand.completeAddress(&o.where, otherwise, !o.client)
}
