package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/internal/device"
)

const pingUsage = `rdmactor ping -s [-a HOST[:PORT]] [-P] [flags]
rdmactor ping -c -a HOST[:PORT] [flags]

Speaks with another rdmactor or with rping(1): the client tells of a buffer, the server reads it, and writes what it read into a
second one. Both end when the client has had its rounds; with -P the server goes on. Ctrl-C ends either.
`

// pingFlags are what the flags say.
type pingFlags struct {
	server, client    bool
	addr, port        string
	count, size       int
	persistent        bool
	verbose, validate bool
	crc               bool
	source            netip.Addr
	device            device.Kind
	timeout           time.Duration
}

const pingPort = "7174" // rping's

// maxSize bounds -S: a buffer is allocated for every client.
const maxSize = 1 << 30

func parsePing(args []string, stdout io.Writer) (pingFlags, error) {
	var o pingFlags
	f := flag.NewFlagSet("rdmactor ping", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are told once, by main
	f.BoolVar(&o.server, "s", false, "be the server")
	f.BoolVar(&o.client, "c", false, "be the client")
	f.StringVar(&o.addr, "a", "", addrUsage)
	f.StringVar(&o.port, "p", "", portUsage(pingPort))
	f.IntVar(&o.count, "C", 0, "`ROUNDS` of a client, 0: until Ctrl-C; a server gives its clients what they ask for")
	f.IntVar(&o.size, "S", 64, "`BYTES` of a client's data, at most that of a server's (rping: 23 to 65535)")
	f.BoolVar(&o.persistent, "P", false, "serve any number of clients, also at once, until Ctrl-C")
	f.BoolVar(&o.verbose, "v", false, "print the data")
	f.BoolVar(&o.validate, "V", false, "client: check what comes back")
	f.BoolVar(&o.crc, "crc", false, "ask the peer for CRC32c; not for soft-iWARP where something on the way cuts TCP segments anew")
	f.TextVar(&o.source, "I", netip.Addr{}, sourceUsage)
	kind := f.String("device", string(device.Auto), device.Usage)
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long the peer may take for each step")
	if err := f.Parse(spread(f, args)); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(stdout)
		fmt.Fprint(stdout, pingUsage, "\nFlags:\n")
		f.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w; see rdmactor ping --help", err)
	}
	o.device = device.Kind(*kind)
	return o, o.check(f.Args())
}

func (o *pingFlags) check(words []string) error {
	switch {
	case len(words) > 0:
		return fmt.Errorf("unexpected %q; see rdmactor ping --help", words[0])
	case o.server == o.client:
		return errors.New("server or client? rdmactor ping -s, or rdmactor ping -c -a HOST:PORT")
	case o.client && o.addr == "":
		return errors.New("connect to whom? rdmactor ping -c -a HOST:PORT")
	case o.client && o.persistent:
		return errors.New("-P: only a server serves several clients")
	case o.count < 0:
		return fmt.Errorf("-C %d: not a number of rounds", o.count)
	case o.size < 1 || o.size > maxSize:
		return fmt.Errorf("-S %d: have 1 to %d bytes", o.size, maxSize)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: too short", o.timeout)
	case o.server && o.source.IsValid():
		return errors.New("-I: a client's address; a server listens on -a")
	}
	a, err := endpoint(o.addr, o.port, pingPort, o.server)
	if err != nil {
		return err
	}
	o.addr, o.port = a.Host, a.Port
	return o.device.Check()
}

// spread makes of getopt's "-vVC10", which rping takes, flag's "-v -V -C 10". What f knows by its whole name it leaves alone.
func spread(f *flag.FlagSet, args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		letters, ok := strings.CutPrefix(a, "-")
		name, _, _ := strings.Cut(letters, "=")
		if !ok || strings.HasPrefix(letters, "-") || len(name) < 2 || f.Lookup(name) != nil || name == "help" {
			out = append(out, a)
			continue
		}
		for letters != "" {
			letter := letters[:1]
			letters = letters[1:]
			out = append(out, "-"+letter)
			if fl := f.Lookup(letter); fl != nil && !isBool(fl) && letters != "" {
				out = append(out, letters)
				break
			}
		}
	}
	return out
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}
