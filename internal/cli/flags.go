package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
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
			printFlags(f, stdout)
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w; see %s --help", err, f.Name())
		case f.NArg() == 0:
			return rest, nil
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
}

// helpColumns is the width of a terminal that shows a help text in full.
const helpColumns = 80

// printFlags is PrintDefaults in lines that fit a terminal.
func printFlags(f *flag.FlagSet, out io.Writer) {
	f.VisitAll(func(fl *flag.Flag) {
		value, usage := flag.UnquoteUsage(fl)
		name := "-" + fl.Name
		if len(fl.Name) > 1 {
			name = "-" + name
		}
		fmt.Fprintf(out, "  %s\n", strings.TrimSpace(name+" "+value))
		if none := []string{"", "0", "0s", "false", "invalid IP"}; !slices.Contains(none, fl.DefValue) {
			usage += " (default " + fl.DefValue + ")"
		}
		line := "       "
		for word := range strings.FieldsSeq(usage) {
			if len(line)+1+len(word) > helpColumns {
				fmt.Fprintln(out, line)
				line = "       "
			}
			line += " " + word
		}
		fmt.Fprintln(out, line)
	})
}

// ParseFlags is Parse for a command without arguments.
func ParseFlags(f *flag.FlagSet, usage string, args []string, stdout io.Writer) error {
	rest, err := Parse(f, usage, args, stdout)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unexpected %q; see %s --help", rest[0], f.Name())
	}
	return err
}
