package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/rdmactor/rdmactor/internal/overlay"
)

// hunt is how a defect is looked for.
type hunt struct {
	ctx       context.Context
	root, tmp string
	from      uint64
	seeds     int
	with      string // workloads
	clean     string // the program without a defect; empty: it was not built so far
}

// find plays seeds with a defect until one fails. seed 0: all passed. The seed must pass without
// the defect, or it has found something else.
func (h *hunt) find(d *defect) (seed uint64, what string, err error) {
	program, err := h.build(d)
	if err != nil {
		return 0, "", err
	}
	if seed, what, err = h.play(program, h.from, h.seeds); seed == 0 || err != nil {
		return 0, "", err
	}
	if h.clean == "" {
		if h.clean, err = h.build(nil); err != nil {
			return 0, "", err
		}
	}
	if bad, what, err := h.play(h.clean, seed, 1); bad != 0 || err != nil {
		return 0, "", errors.Join(err, fmt.Errorf("seed %d fails without the defect, too: %s", bad, what))
	}
	return seed, what, nil
}

// build builds the simulator with a defect. d may be nil.
func (h *hunt) build(d *defect) (program string, err error) {
	program = filepath.Join(h.tmp, "clean")
	args := []string{"build"}
	if d != nil {
		program = filepath.Join(h.tmp, "sim") // in the place of the last one
		list, err := overlay.Write(h.root, h.tmp, d.edits...)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay="+list)
	}
	build := exec.CommandContext(h.ctx, "go", append(args, "-o", program, module+"/lab/sim")...)
	build.Dir = h.root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}

// failed is the line that names the seed.
var failed = regexp.MustCompile(`(?m)^seed (\d+) failed: (.*)$`)

// play plays seeds, in several processes, until one fails. seed 0: all passed.
func (h *hunt) play(program string, from uint64, seeds int) (seed uint64, what string, err error) {
	cmd := exec.CommandContext(h.ctx, program, "-from", strconv.FormatUint(from, 10), "-seeds", strconv.Itoa(seeds), "-only", h.with, "-shrink", "0")
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
