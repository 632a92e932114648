package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmactor/rdmactor/internal/overlay"
)

// module is the module's path.
const module = "github.com/rdmactor/rdmactor"

// defects are all there are.
var defects = slices.Concat(endDefects, actorDefects, memoryDefects, iwarpDefects, rpcDefects, aboveDefects, invented, securedDefects)

// defect is one that was mended, and how to put it back.
type defect struct {
	name   string
	was    string // what a user saw
	mended string // the subject of the commit
	layer  string
	edits  []overlay.Edit
	// The test that was added with the mend, or one of them: it fails with the defect.
	pkg, test string
	// The simulator finds it with this workload alone, within so many seeds that begin with 1. The
	// bound leaves room for what seeds mean tomorrow: it is some four times the most that was
	// measured so far. Empty and 0: it was not found so far.
	workload string
	within   int
}

// edit is a replacement in one file.
func edit(file, from, to string) overlay.Edit { return overlay.Edit{File: file, Old: from, New: to} }

// row begins the defect's row in the table of docs/simulation.md. What follows is how many seeds it
// took.
func (d *defect) row() string {
	return fmt.Sprintf("| %s | %s | %s | %d |", d.name, strings.TrimSuffix(d.was, "."), d.workload, d.within)
}
