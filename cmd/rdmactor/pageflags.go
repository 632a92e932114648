package main

import (
	"flag"
	"fmt"
)

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
