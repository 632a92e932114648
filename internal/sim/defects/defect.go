package main

import "github.com/rdmactor/rdmactor/internal/overlay"

// module is the module's path.
const module = "github.com/rdmactor/rdmactor"

// defect is one that was mended, and how to put it back.
type defect struct {
	name   string
	was    string // what a user saw
	mended string // the subject of the commit
	layer  string
	edits  []overlay.Edit
	// The test that was added with the mend, or one of them: it fails with the defect.
	pkg, test string
}

// edit is a replacement in one file.
func edit(file, from, to string) overlay.Edit { return overlay.Edit{File: file, Old: from, New: to} }
