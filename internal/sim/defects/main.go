package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmactor/rdmactor/internal/overlay"
)

// defects are all there are.
var defects = slices.Concat(endDefects, actorDefects, memoryDefects, iwarpDefects, rpcDefects, aboveDefects)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the command. It fails if a defect is not found, or if the program as it is does not pass.
func run(ctx context.Context) error {
	seeds := flag.Int("n", 500, "try so many seeds for each defect")
	from := flag.Uint64("from", 1, "the first `seed`")
	only := flag.String("only", "", "try only the defects whose names or layers match this `expression`")
	with := flag.String("with", "", "only these `workloads`, such as calls,lives")
	list := flag.Bool("list", false, "only list the defects")
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
	h := hunt{ctx, root, tmp, *from, *seeds, *with}
	if !*list {
		if seed, what, err := h.try(nil); err != nil || seed != 0 {
			return errors.Join(err, fmt.Errorf("without a defect seed %d fails: %s", seed, what))
		}
	}
	missed := 0
	for i := range defects {
		d := &defects[i]
		if !wanted.MatchString(d.name + " " + d.layer) {
			continue
		}
		if *list {
			fmt.Printf("%s (%s)\n	%s\n	%s\n", d.name, d.layer, d.was, d.mended)
			continue
		}
		seed, what, err := h.try(d)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", d.name, err)
		case seed == 0:
			missed++
			fmt.Printf("%-28s not within %d\n", d.name, *seeds)
		default:
			fmt.Printf("%-28s %5d   seed %d: %s\n", d.name, seed-*from+1, seed, what)
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d defects were not found", missed)
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

// hunt is how defects are looked for.
type hunt struct {
	ctx       context.Context
	root, tmp string
	from      uint64
	seeds     int
	with      string
}

// failed is the line that names the seed.
var failed = regexp.MustCompile(`(?m)^seed (\d+) failed: (.*)$`)

// try runs the simulator with a defect until a seed fails. seed 0: all passed. d may be nil.
func (h *hunt) try(d *defect) (seed uint64, what string, err error) {
	program := filepath.Join(h.tmp, "sim")
	args := []string{"build", "-o", program}
	if d != nil {
		list, err := overlay.Write(h.root, h.tmp, d.edits...)
		if err != nil {
			return 0, "", err
		}
		args = append(args, "-overlay="+list)
	}
	build := exec.CommandContext(h.ctx, "go", append(args, module+"/internal/sim")...)
	build.Dir = h.root
	if out, err := build.CombinedOutput(); err != nil {
		return 0, "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(h.ctx, program, "-from", strconv.FormatUint(h.from, 10), "-seeds", strconv.Itoa(h.seeds), "-only", h.with, "-shrink", "0")
	cmd.Dir = h.tmp
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch m := failed.FindSubmatch(out); {
	case err == nil:
		return 0, "", nil
	case h.ctx.Err() != nil || !errors.As(err, &exit):
		return 0, "", err
	case m != nil:
		seed, err = strconv.ParseUint(string(m[1]), 10, 64)
		return seed, string(m[2]), err
	}
	return 0, "", fmt.Errorf("%w, and no seed is named\n%s", err, tail(out))
}

// tail is the end of what a program has printed.
func tail(out []byte) []byte {
	const most = 4 << 10
	return bytes.TrimSpace(out[max(0, len(out)-most):])
}
