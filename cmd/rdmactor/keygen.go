package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/rdmactor/rdmactor/actor/keyfile"
	"github.com/rdmactor/rdmactor/internal/cli"
)

const keygenUsage = `rdmactor keygen IDENTITY [flags]

Creates a pre-shared key, 32 random bytes, in the file IDENTITY.key. Only the
file's owner can read it, and an existing file is not changed. Programs take it
with --key: the connecting side uses the first key of its file, the listening
side accepts all keys of its file. So a server's file is the concatenation of
its clients' files:

  cat ann.key bob.key | install -m 600 /dev/stdin server.key

Give each client a separate key: whoever has a key can pass for its identity,
and for the server to that client.

To replace a key while programs run, append a second key of the same identity
with --add, distribute the file, and remove the first line everywhere when all
have it. Running programs read their files again. See docs/keys.md.

FLAGS
`

// keygenFlags is the command line of keygen.
type keygenFlags struct {
	identity, file string
	add            bool
}

func parseKeygen(args []string, stdout io.Writer) (k keygenFlags, err error) {
	f := flag.NewFlagSet("rdmactor keygen", flag.ContinueOnError)
	f.StringVar(&k.file, "o", "", "write to `FILE` (default IDENTITY.key); - is standard output")
	f.BoolVar(&k.add, "add", false, "append the key to an existing file")
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
		return k, fmt.Errorf("%q cannot be the name of a file: name one with -o FILE", k.identity)
	case k.file == "":
		k.file = k.identity + ".key"
	case k.file == "-" && k.add:
		return k, errors.New("--add: to which file? -o - is standard output; use -o FILE")
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
	switch {
	case errors.Is(err, fs.ErrExist) && !isFile(k.file):
		return fmt.Errorf("%w, and is no file of keys: write to another file with -o FILE", err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: append a key to it with --add, or write to another file with -o FILE", err)
	case errors.Is(err, fs.ErrNotExist) && k.add:
		return fmt.Errorf("%w: leave out --add to create it", err)
	case err != nil:
		return err
	}
	fmt.Fprintf(stdout, "%s has a new key of %s\n", k.file, k.identity)
	return nil
}

// isFile reports whether name is a file, or a link to one.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
