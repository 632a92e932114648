package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// Parse parses flags that may also stand behind the arguments, which it returns. If the line asks
// for help, it prints usage and the flags, and returns flag.ErrHelp. Other errors name f, the
// command.
func Parse(f *flag.FlagSet, usage string, args []string, stdout io.Writer) (rest []string, err error) {
	f.SetOutput(io.Discard) // Main reports errors, once
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

// ParseFlags is Parse for a command without arguments.
func ParseFlags(f *flag.FlagSet, usage string, args []string, stdout io.Writer) error {
	rest, err := Parse(f, usage, args, stdout)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unexpected %q; see %s --help", rest[0], f.Name())
	}
	return err
}
