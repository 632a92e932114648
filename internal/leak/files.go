package leak

import (
	"os"
	"slices"
	"testing"
	"time"
)

// patience is how long files may stay open after a test. A driver that counts the machine's
// threads opens some for milliseconds.
const patience = 10 * time.Second

// Files fails the test if files that it opened are still open after it and after the cleanups that
// it registers later. It needs Linux's /proc.
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

// openFiles lists the open files of the process, each as its number and its target.
func openFiles(tb testing.TB) (files []string) {
	tb.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range all {
		// This fails for the descriptor of the directory, which is closed.
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil {
			files = append(files, f.Name()+": "+to)
		}
	}
	return files
}
