package leak

import (
	"os"
	"slices"
	"testing"
	"time"
)

// patience is how long files may stay open after a test. A count of the machine's threads has
// some open for milliseconds.
const patience = 10 * time.Second

// Files fails the test if files that it opened are open when it has ended, after the cleanups
// that the test registers later. It works on Linux.
func Files(tb testing.TB) {
	tb.Helper()
	before := openFiles(tb)
	tb.Cleanup(func() {
		var added []string
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			added = slices.DeleteFunc(openFiles(tb), func(file string) bool { return slices.Contains(before, file) })
			if len(added) == 0 || time.Now().After(deadline) {
				break
			}
		}
		if len(added) > 0 {
			tb.Errorf("after the test these files are open: %v, and before it these were: %v", added, before)
		}
	})
}

// openFiles lists the open files of the process, each as its number and what it refers to.
func openFiles(tb testing.TB) (files []string) {
	tb.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range all {
		// If this fails, it was the directory.
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil {
			files = append(files, f.Name()+": "+to)
		}
	}
	return files
}
