package main

import (
	"errors"
	"fmt"
	"io"
	"time"
)

const pingUsage = `rdmactor ping -s [-a HOST[:PORT]] [-P] [flags]
rdmactor ping -c -a HOST[:PORT] [flags]

The conversation of rping(1), with another rdmactor or with rping: the client
announces a buffer, the server reads it, and writes what it read into a second
one. Both end after the client's rounds; with -P the server continues. Ctrl-C
ends either.

EXAMPLES
  rdmactor ping -s -P
  rdmactor ping -c -a localhost -C 10 -v -V

FLAGS
`

var pingCommand = command{
	name: "ping", usage: pingUsage, server: "the server", client: "the client", addr: addrUsage, port: pingPort,
	timeout: "maximum `DURATION` of each step of the peer", patience: 10 * time.Second,
}

// pingFlags are the values of the flags.
type pingFlags struct {
	where
	count, size       int
	persistent        bool
	verbose, validate bool
	crc               bool
	pcap              string
}

const pingPort = "7174" // the same as rping's

// maxSize bounds -S, because a server allocates a buffer of that size for every client.
const maxSize = 1 << 30

func parsePing(args []string, stdout io.Writer) (pingFlags, error) {
	var o pingFlags
	f := pingCommand.newFlagSet(&o.where)
	f.IntVar(&o.count, "C", 0, "client: number of `ROUNDS`; 0: until Ctrl-C")
	f.IntVar(&o.size, "S", 64, "`BYTES` of data; a client's at most those of its server (rping: 23 to 65535)")
	f.BoolVar(&o.persistent, "P", false, "server: serve any number of clients, concurrently, until Ctrl-C")
	f.BoolVar(&o.verbose, "v", false, "print the data")
	f.BoolVar(&o.validate, "V", false, "client: verify the data that returns")
	f.BoolVar(&o.crc, "crc", false, "ask the peer for CRC32c; not with soft-iWARP if TCP segments are split on the path")
	f.StringVar(&o.pcap, "pcap", "", "capture the traffic in `FILE`, for Wireshark; only the embedded device can")
	if err := pingCommand.parseArgs(f, args, stdout); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o *pingFlags) check() error {
	switch {
	case o.server == o.client:
		return errors.New("server or client? rdmactor ping -s, or rdmactor ping -c -a HOST:PORT")
	case o.client && o.persistent:
		return errors.New("-P: only a server serves several clients")
	case o.count < 0:
		return fmt.Errorf("-C %d: not a number of rounds", o.count)
	case o.size < 1 || o.size > maxSize:
		return fmt.Errorf("-S %d: want 1 to %d bytes", o.size, maxSize)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: too short", o.timeout)
	case o.server && o.source.IsValid():
		return errors.New("-I: a client's address; a server listens on -a")
	}
	return pingCommand.completeAddress(&o.where, pingPort, o.server)
}
