package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the command. It fails if a defect is not found.
func run(ctx context.Context) error {
	seeds := flag.Int("n", 0, "try so many seeds for each defect; 0: as many as its bound says, and no defect without one")
	from := flag.Uint64("from", 1, "the first `seed`")
	only := flag.String("only", "", "try only the defects whose names or layers match this `expression`")
	with := flag.String("with", "", "these `workloads`, such as calls,lives; without it those that each defect names")
	list := flag.Bool("list", false, "only list the defects")
	table := flag.Bool("table", false, "print the rows of the table in docs/simulation.md")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "defects")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // a folder of the system's for such
	h := hunt{ctx: ctx, root: root, tmp: tmp, from: *from}
	var missed []string
	for _, d := range defects {
		if !wanted.MatchString(d.name + " " + d.layer) {
			continue
		}
		if *list {
			fmt.Printf("%s (%s)\n	%s\n	%s\n", d.name, d.layer, d.was, d.mended)
			continue
		}
		h.seeds, h.with = d.within, d.workload
		if *seeds > 0 {
			h.seeds = *seeds
		}
		if *with != "" {
			h.with = *with
		}
		if h.seeds == 0 {
			continue
		}
		seed, what, err := h.find(&d)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", d.name, err)
		case seed == 0:
			missed = append(missed, d.name)
			fmt.Printf("%-28s not within %d\n", d.name, h.seeds)
		case *table:
			d.workload = h.with
			fmt.Println(d.row(), seed-*from+1, "|")
		default:
			fmt.Printf("%-28s %5d   seed %d: %s\n", d.name, seed-*from+1, seed, what)
		}
	}
	if len(missed) > 0 {
		return errors.New("not found: " + strings.Join(missed, ", "))
	}
	return nil
}

// moduleRoot is the folder of the repository.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
