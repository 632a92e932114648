package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/perf"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

const perfUsage = `NAME
  rdmactor perf - latency and bandwidth of a device between two processes

SYNOPSIS
  rdmactor perf -s [-a HOST[:PORT]] [--wait MODE] [flags]
  rdmactor perf -c -a HOST[:PORT] [--op OPS] [--sizes SIZES] [--latency]
                [--bandwidth] [flags]

DESCRIPTION
  Measures as perftest's ib_send_lat, ib_write_bw and the others do, at the
  level of verbs: queue pairs and completions, without actors, credits and
  mailboxes. Both sides are rdmactor perf. A server serves any number of clients
  until Ctrl-C. Each operation and size has a connection of its own.

  Latency of send and write is half of the round trip: the server answers in
  kind. A write is followed by an empty send that announces it, because programs
  may not poll memory for a change. Latency of read is the full round trip.
  p99.9 means little with fewer than some 10,000 trips.

  Bandwidth keeps --depth messages outstanding. Sends and writes count when the
  server has confirmed them, reads when they complete.

  Each side waits as its own --wait specifies: block sleeps in the kernel, spin
  polls for 50 us first, busy polls forever and occupies a processor. For busy
  give each side a processor (taskset(1)). CPU is the client's processor time,
  user and system, per message or round trip.

  --tos, --qp-timeout and --retry-count apply to the own side, in the units of
  perftest's --tos, --qp-timeout and --retry_count with -R. On RoCE a line shows
  the path of the client's packets. Its GID and VLAN follow from the address to
  connect from (-I).

EXAMPLES
  rdmactor perf -s -a 127.0.0.1 --wait busy
  rdmactor perf -c -a 127.0.0.1 --wait busy --latency --op send,read \
                --sizes 1:64K
  rdmactor perf -c -a 127.0.0.1 --bandwidth --op write --size 1M \
                --duration 5s --json result.json

FLAGS
`

const (
	perfPort   = "18515" // the same as perftest's
	roomOnWay  = 16 << 20
	leastDepth = 4
	mostDepth  = 256
)

var perfCommand = command{
	name: "perf", usage: perfUsage, server: "the server", client: "the client, which measures", addr: addrUsage, port: perfPort,
	timeout: "maximum `DURATION` of silence on a connection, or twice that", patience: 10 * time.Second,
}

// waits are the values of --wait.
var waits = map[string]eventloop.WaitMode{"block": eventloop.Block, "spin": eventloop.Spin, "busy": eventloop.Busy}

// perfFlags are the values of the flags.
type perfFlags struct {
	where
	ops       []perf.Op
	kinds     []perf.Kind
	sizes     []int
	depth     int // 0: as many messages as fit into roomOnWay
	wait      string
	warmUp    time.Duration
	duration  time.Duration
	count     int
	crc       bool
	json      string // file; "": none
	tos       uint
	qpTimeout uint
	retries   uint
}

func parsePerf(args []string, stdout io.Writer) (perfFlags, error) {
	o := perfFlags{ops: []perf.Op{perf.Send}, sizes: []int{64}}
	f := perfCommand.newFlagSet(&o.where)
	f.Func("op", "`OPS` to measure: send, write, read, or several, such as send,read (default send)", func(s string) error {
		o.ops = nil
		for word := range strings.SplitSeq(s, ",") {
			o.ops = append(o.ops, perf.Op(word))
		}
		return nil
	})
	size := func(s string) (err error) {
		o.sizes, err = parseSizes(s)
		return err
	}
	f.Func("sizes", "`SIZES` in bytes, K or M: a list such as 64,4K, or 1:1M for its powers of two (default 64)", size)
	f.Func("size", "the same as --sizes `SIZE`", size)
	latency := f.Bool("latency", false, "measure latency (default: both)")
	bandwidth := f.Bool("bandwidth", false, "measure bandwidth (default: both)")
	f.IntVar(&o.depth, "depth", 0, "bandwidth: number of outstanding `MESSAGES` (default: as many as fit into 16 MiB, 4 to 256)")
	f.StringVar(&o.wait, "wait", "block", "`MODE` in which this side waits: block, spin or busy")
	f.DurationVar(&o.warmUp, "warmup", 100*time.Millisecond, "run each test for this `DURATION` before it is measured")
	f.DurationVar(&o.duration, "duration", time.Second, "measure each test for this `DURATION`")
	f.IntVar(&o.count, "count", 0, "measure at least this `NUMBER` of messages or round trips instead")
	f.BoolVar(&o.crc, "crc", false, "iwarp: ask the peer for CRC32c")
	f.StringVar(&o.json, "json", "", "write the results to `FILE`; - is standard output, without the tables")
	f.UintVar(&o.tos, "tos", 0, "send with this `CLASS` of traffic, the DSCP times four (default the host's)")
	f.UintVar(&o.qpTimeout, "qp-timeout", 0, "RoCE: wait 4.096 us times 2 to the `EXPONENT` for an acknowledgement (default the kernel's)")
	f.UintVar(&o.retries, "retry-count", 0, "RoCE: `NUMBER` of retransmissions before the connection fails, 1 to 6 (default 6)")
	if err := perfCommand.parseArgs(f, args, stdout); err != nil {
		return o, err
	}
	if *latency || !*bandwidth {
		o.kinds = append(o.kinds, perf.Latency)
	}
	if *bandwidth || !*latency {
		o.kinds = append(o.kinds, perf.Bandwidth)
	}
	if o.server {
		if err := serverOnly(f); err != nil {
			return o, err
		}
	}
	return o, o.check()
}

// serverOnly returns an error if a server was given a flag that only a client has.
func serverOnly(f *flag.FlagSet) (err error) {
	of := []string{"s", "c", "a", "p", "wait", "crc", "device", "timeout", "tos", "qp-timeout", "retry-count"}
	f.Visit(func(fl *flag.Flag) {
		if !slices.Contains(of, fl.Name) && err == nil {
			err = fmt.Errorf("-%s: the client measures, and chooses what; use it with -c", fl.Name)
		}
	})
	return err
}

func (o *perfFlags) check() error {
	switch {
	case o.server == o.client:
		return errors.New("server or client? rdmactor perf -s, or rdmactor perf -c -a HOST:PORT")
	case o.warmUp < 0:
		return fmt.Errorf("--warmup %v: want 0 or more", o.warmUp)
	case o.duration <= 0:
		return fmt.Errorf("--duration %v: too short", o.duration)
	case o.count < 0:
		return fmt.Errorf("--count %d: not a number of messages", o.count)
	case o.depth < 0:
		return fmt.Errorf("--depth %d: not a number of messages", o.depth)
	case o.timeout < time.Millisecond:
		return fmt.Errorf("--timeout %v: too short", o.timeout)
	case o.tos > 255:
		return fmt.Errorf("--tos %d: want at most 255", o.tos)
	case o.qpTimeout > 31:
		return fmt.Errorf("--qp-timeout %d: want 1 to 31", o.qpTimeout)
	case o.retries > 6:
		return fmt.Errorf("--retry-count %d: want 1 to 6: some devices take 7 as no end", o.retries)
	}
	if _, ok := waits[o.wait]; !ok {
		return fmt.Errorf("--wait %s: want block, spin or busy", o.wait)
	}
	for _, t := range o.requestedTests() {
		if err := t.Check(); err != nil {
			return err
		}
	}
	return perfCommand.completeAddress(&o.where, perfPort, o.server)
}

// transportParams returns the parameters with which this side's connections send.
func (o *perfFlags) transportParams() cmid.Transport {
	t := cmid.Transport{TrafficClass: uint8(o.tos), RetryCount: uint8(o.retries)}
	if o.qpTimeout > 0 {
		t.AckTimeout = cmid.AckTimeout(uint8(o.qpTimeout))
	}
	return t
}

// requestedTests returns the tests that the flags request, table by table.
func (o *perfFlags) requestedTests() (list []perf.Test) {
	for _, kind := range o.kinds {
		for _, op := range o.ops {
			for _, size := range o.sizes {
				list = append(list, o.newTest(kind, op, size))
			}
		}
	}
	return list
}

// newTest returns the test that the flags request for a size.
func (o *perfFlags) newTest(kind perf.Kind, op perf.Op, size int) perf.Test {
	t := perf.Test{Op: op, Kind: kind, Size: size, Depth: 1}
	if kind == perf.Bandwidth {
		t.Depth = o.depth
		if t.Depth == 0 {
			t.Depth = min(max(roomOnWay/max(size, 1), leastDepth), mostDepth)
		}
	}
	return t
}

// parseSizes parses lists and ranges of sizes, such as "64", "1,4K,1M" and "1:1M".
func parseSizes(s string) (list []int, err error) {
	for word := range strings.SplitSeq(s, ",") {
		from, to, many := strings.Cut(word, ":")
		least, err := parseSize(from)
		if err != nil {
			return nil, err
		}
		most := least
		if many {
			if most, err = parseSize(to); err != nil {
				return nil, err
			}
			if most < least {
				return nil, fmt.Errorf("%q: from less to more", word)
			}
		}
		for n := least; n <= most; n *= 2 {
			list = append(list, n)
		}
	}
	return list, nil
}

func parseSize(s string) (int, error) {
	number, unit := s, 1
	switch {
	case strings.HasSuffix(s, "K"):
		number, unit = s[:len(s)-1], 1<<10
	case strings.HasSuffix(s, "M"):
		number, unit = s[:len(s)-1], 1<<20
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > perf.MaxSize/unit {
		return 0, fmt.Errorf("%q: want 1 to %d bytes, such as 64, 4K or 1M", s, perf.MaxSize)
	}
	return n * unit, nil
}
