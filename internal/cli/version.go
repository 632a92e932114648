package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is which build of a command this is, in one line: the module's version, which names the
// commit of a build in a repository, and what has built it.
func Version(name string) string {
	version := "(devel)"
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		version = b.Main.Version
	}
	return fmt.Sprintf("%s %s, %s %s/%s", name, version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
