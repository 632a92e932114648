package main

import (
	"bufio"
	"cmp"
	"context"
	"debug/elf"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// counts is how many instructions an operation executes, by function. Those of the kernel are not
// counted, and those of what prepares the benchmark cancel out.
type counts map[string]float64

//go:embed qemu/instructions.c
var pluginSource []byte

// buildPlugin compiles the plugin that counts.
func (w *workshop) buildPlugin(ctx context.Context) (plugin string, err error) {
	source, plugin := filepath.Join(w.dir, "instructions.c"), filepath.Join(w.dir, "instructions.so")
	if err := os.WriteFile(source, pluginSource, 0o600); err != nil {
		return "", err
	}
	_, err = programOutput(ctx, w.dir, "gcc", "-O2", "-shared", "-fPIC", "-pthread", "-o", plugin, source)
	return plugin, err
}

// countInstructions counts a benchmark's instructions with both trees.
func (w *workshop) countInstructions(ctx context.Context, plugin string, b benchmark) (sides [2]counts, err error) {
	for side, t := range w.trees {
		fmt.Fprintf(os.Stderr, "\r\033[K%s: %d of 2", b.name(), side+1)
		if sides[side], err = t.countInstructions(ctx, plugin, b); err != nil && (side == now || ctx.Err() != nil) {
			return sides, err
		}
	}
	fmt.Fprint(os.Stderr, "\r\033[K")
	return sides, nil
}

// countInstructions subtracts the instructions of a run from those of one that is twice as long.
func (t tree) countInstructions(ctx context.Context, plugin string, b benchmark) (counts, error) {
	functions, err := functionsOf(t.binaryPath(b))
	if err != nil {
		return nil, err
	}
	b.ops = max(b.ops/4, 1)
	short, err := t.runInQEMU(ctx, plugin, b, functions)
	if err != nil {
		return nil, err
	}
	double := b
	double.ops *= 2
	c, err := t.runInQEMU(ctx, plugin, double, functions)
	for f := range maps.Keys(c) {
		c[f] = (c[f] - short[f]) / float64(b.ops)
	}
	return c, err
}

func (t tree) runInQEMU(ctx context.Context, plugin string, b benchmark, functions []elf.Symbol) (counts, error) {
	out := plugin + ".out"
	// preemption by signals would depend on the time
	args := append([]string{"-plugin", plugin + ",out=" + out, "-E", "GODEBUG=asyncpreemptoff=1", t.binaryPath(b)}, b.testArgs()...)
	cmd := exec.CommandContext(ctx, "qemu-x86_64", args...)
	cmd.Dir = filepath.Join(t.root, b.pkg)
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s in %s: %w\n%s", b.name(), t.root, err, text)
	}
	f, err := os.Open(out)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sumFunctions(f, functions)
}

// functionsOf returns a binary's functions, in the order of their addresses.
func functionsOf(binary string) ([]elf.Symbol, error) {
	f, err := elf.Open(binary)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	functions := slices.DeleteFunc(symbols, func(s elf.Symbol) bool { return elf.ST_TYPE(s.Info) != elf.STT_FUNC })
	slices.SortFunc(functions, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	return functions, err
}

// sumFunctions adds what the plugin wrote up, by function.
func sumFunctions(blocks io.Reader, functions []elf.Symbol) (counts, error) {
	c := counts{}
	in := bufio.NewScanner(blocks)
	for in.Scan() {
		var addr, n uint64
		if _, err := fmt.Sscan(in.Text(), &addr, &n); err != nil {
			return nil, fmt.Errorf("%q: %w", in.Text(), err)
		}
		name := "other code"
		behind, _ := slices.BinarySearchFunc(functions, addr+1, func(s elf.Symbol, a uint64) int { return cmp.Compare(s.Value, a) })
		if below := functions[:behind]; behind > 0 {
			if s := below[len(below)-1]; addr < s.Value+s.Size {
				name = s.Name
			}
		}
		c[name] += float64(n)
	}
	return c, in.Err()
}

func (c counts) figures() figures {
	total := 0.0
	for _, n := range c {
		total += n
	}
	if total == 0 {
		return nil
	}
	return figures{instructions: total}
}

// functionTable lists the functions that execute, or executed, most instructions.
func functionTable(sides [2]counts) string {
	all := maps.Clone(sides[now])
	maps.Copy(all, sides[before])
	names := slices.Sorted(maps.Keys(all))
	weight := func(name string) float64 { return max(sides[now][name], sides[before][name]) }
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(weight(b), weight(a)) })
	var b strings.Builder
	b.WriteString("| function | before | now |\n|---|---|---|\n")
	for _, name := range names[:min(len(names), 40)] {
		fmt.Fprintf(&b, "| %s | %.1f | %.1f |\n", name, sides[before][name], sides[now][name])
	}
	return b.String()
}
