package main

import (
	"flag"
	"fmt"
)

// oneAddress returns the page's address from a command line, or "" if it has none.
func oneAddress(f *flag.FlagSet, rest []string) (string, error) {
	switch len(rest) {
	case 0:
		return "", nil
	case 1:
		return rest[0], nil
	}
	return "", fmt.Errorf("unexpected %q; see %s --help", rest[1], f.Name())
}
