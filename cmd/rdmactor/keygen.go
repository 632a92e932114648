package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/rdmactor/rdmactor/actor/keyfile"
	"github.com/rdmactor/rdmactor/internal/cli"
)

const keygenUsage = `rdmactor keygen IDENTITY [flags]

Makes a pre-shared key, 32 random bytes, and puts it into IDENTITY.key, or into the file that -o names. Nobody but the file's owner can
read it. A file that is there is left as it is. Programs take it with --key: who connects uses the first key of its file, and who listens
takes all of its file. So the file of a server has those of its clients:
cat ann.key bob.key | install -m 600 /dev/stdin server.key

Give each client a key of its own: who has a key can pass for its identity, and also, towards that client, for the server.

To replace a key while programs run: put a second one of the same identity behind it, with --add, give the file to everybody, and remove
the first line everywhere when all have it. Programs that run read their files again.

`

// keygenFlags is the command line of keygen.
type keygenFlags struct {
	identity, file string
	add            bool
}

func parseKeygen(args []string, stdout io.Writer) (k keygenFlags, err error) {
	f := flag.NewFlagSet("rdmactor keygen", flag.ContinueOnError)
	f.StringVar(&k.file, "o", "", "the `FILE` (default IDENTITY.key); - prints the key")
	f.BoolVar(&k.add, "add", false, "put the key behind those of a file that is there")
	rest, err := cli.Parse(f, keygenUsage, args, stdout)
	switch {
	case err != nil:
		return k, err
	case len(rest) == 0:
		return k, errors.New("whose key? rdmactor keygen IDENTITY")
	case len(rest) > 1:
		return k, fmt.Errorf("unexpected %q; see %s --help", rest[1], f.Name())
	}
	k.identity = rest[0]
	switch {
	case k.file == "" && strings.ContainsAny(k.identity, "/\x00"):
		return k, fmt.Errorf("%q cannot be the name of a file: give one with -o", k.identity)
	case k.file == "":
		k.file = k.identity + ".key"
	case k.file == "-" && k.add:
		return k, errors.New("--add: to which file?")
	}
	return k, nil
}

// runKeygen makes a key.
func runKeygen(args []string, stdout io.Writer) error {
	k, err := parseKeygen(args, stdout)
	if err != nil {
		return err
	}
	c, err := keyfile.Generate(k.identity)
	if err != nil {
		return err
	}
	defer clear(c.Key[:])
	switch {
	case k.file == "-":
		return keyfile.Write(stdout, c)
	case k.add:
		err = keyfile.Add(k.file, c)
	default:
		err = keyfile.Create(k.file, c)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s has a new key of %s\n", k.file, k.identity)
	return nil
}
