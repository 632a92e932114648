package main

import (
	"errors"
	"fmt"
	"io"
	"time"
)

const pingUsage = `rdmactor ping -s [-a HOST[:PORT]] [-P] [flags]
rdmactor ping -c -a HOST[:PORT] [flags]

Speaks with another rdmactor or with rping(1): the client announces a buffer, the server reads it, and writes what it read into a
second one. Both end when the client has had its rounds; with -P the server goes on. Ctrl-C ends either.

Flags:
`

var pingCommand = command{
	name: "ping", usage: pingUsage, server: "the server", client: "the client", addr: addrUsage, port: pingPort,
	timeout: "how long the peer may take for each step", patience: 10 * time.Second,
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
	f.IntVar(&o.count, "C", 0, "`ROUNDS` of a client, 0: until Ctrl-C; a server gives its clients what they ask for")
	f.IntVar(&o.size, "S", 64, "`BYTES` of a client's data, at most that of a server's (rping: 23 to 65535)")
	f.BoolVar(&o.persistent, "P", false, "serve any number of clients, also at once, until Ctrl-C")
	f.BoolVar(&o.verbose, "v", false, "print the data")
	f.BoolVar(&o.validate, "V", false, "client: check what comes back")
	f.BoolVar(&o.crc, "crc", false, "ask the peer for CRC32c; not for soft-iWARP where something on the way cuts TCP segments anew")
	f.StringVar(&o.pcap, "pcap", "", "write what goes over the wire to `FILE`, which Wireshark reads; the embedded device only")
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
