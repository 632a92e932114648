package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// parseAround parses flags that may also stand behind the arguments, which it returns. If the line
// asks for help, it prints the help and returns flag.ErrHelp.
func parseAround(f *flag.FlagSet, usage string, args []string, stdout io.Writer) (rest []string, err error) {
	f.SetOutput(io.Discard) // main reports errors, once
	for {
		switch err := f.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			f.SetOutput(stdout)
			fmt.Fprint(stdout, usage)
			f.PrintDefaults()
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w; see %s --help", err, f.Name())
		case f.NArg() == 0:
			return rest, nil
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
}

// oneAddress is the page's address of a command line, "" if it has none.
func oneAddress(f *flag.FlagSet, rest []string) (string, error) {
	switch len(rest) {
	case 0:
		return "", nil
	case 1:
		return rest[0], nil
	}
	return "", fmt.Errorf("unexpected %q; see %s --help", rest[1], f.Name())
}
