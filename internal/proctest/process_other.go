//go:build !linux

package proctest

import "os/exec"

// tie does nothing where a process cannot be tied to this one.
func tie(*exec.Cmd) {}
