package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// workshop has the test binaries of both trees.
type workshop struct {
	commit string // of the earlier tree, abbreviated
	dir    string // a temporary directory
	trees  [2]tree
}

// tree is a checkout and the test binaries made of it.
type tree struct{ root, bin string }

const (
	before = iota
	now
)

// newWorkshop checks the commit out.
func newWorkshop(ctx context.Context, commit string) (*workshop, error) {
	root, err := runGit(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	short, err := runGit(ctx, root, "rev-parse", "--short", commit+"^{commit}")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "regress")
	if err != nil {
		return nil, err
	}
	w := &workshop{commit: short, dir: dir}
	w.trees[before] = tree{filepath.Join(dir, "tree"), filepath.Join(dir, "before")}
	w.trees[now] = tree{root, filepath.Join(dir, "now")}
	if _, err := runGit(ctx, root, "worktree", "add", "--detach", w.trees[before].root, short); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return w, nil
}

// close removes the checkout and the binaries.
func (w *workshop) close() error {
	_, err := runGit(context.Background(), w.trees[now].root, "worktree", "remove", "--force", w.trees[before].root)
	return errors.Join(err, os.RemoveAll(w.dir))
}

// buildBinaries makes the test binaries of the benchmarks' packages.
func (w *workshop) buildBinaries(ctx context.Context, chosen []benchmark) error {
	for _, t := range w.trees {
		for _, b := range chosen {
			if _, err := os.Stat(t.binaryPath(b)); err == nil {
				continue
			}
			if _, err := programOutput(ctx, t.root, "go", "test", "-c", "-o", t.binaryPath(b), "./"+b.pkg); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t tree) binaryPath(b benchmark) string {
	return filepath.Join(t.bin, strings.ReplaceAll(b.pkg, "/", "-"))
}

// measureBenchmark runs a benchmark with both trees in turns.
func (w *workshop) measureBenchmark(ctx context.Context, b benchmark, rounds int) ([][2]figures, error) {
	pairs := make([][2]figures, rounds)
	for i := range pairs {
		for _, side := range [2]int{i % 2, 1 - i%2} {
			fmt.Fprintf(os.Stderr, "\r\033[K%s: %d of %d", b.name(), i+1, rounds)
			f, err := w.trees[side].runBenchmark(ctx, b)
			if err != nil && (side == now || ctx.Err() != nil) {
				return nil, err
			}
			pairs[i][side] = f // none if the earlier tree does not have the benchmark
		}
	}
	fmt.Fprint(os.Stderr, "\r\033[K")
	return pairs, nil
}

// runBenchmark runs a benchmark once.
func (t tree) runBenchmark(ctx context.Context, b benchmark) (figures, error) {
	cmd := exec.CommandContext(ctx, t.binaryPath(b), b.testArgs()...)
	cmd.Dir = filepath.Join(t.root, b.pkg)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w\n%s", b.name(), t.root, err, out)
	}
	f, err := parseFigures(bytes.NewReader(out))
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w\n%s", b.name(), t.root, err, out)
	}
	used := cmd.ProcessState
	f[cpu] = float64((used.UserTime() + used.SystemTime()).Nanoseconds()) / float64(b.ops)
	return f, nil
}

func runGit(ctx context.Context, dir string, args ...string) (string, error) {
	return programOutput(ctx, dir, "git", args...)
}

// programOutput runs a program and returns what it wrote, without the last newline.
func programOutput(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
