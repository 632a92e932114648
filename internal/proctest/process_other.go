//go:build !linux

package proctest

import "os/exec"

// tieToParent does nothing where a process cannot be tied to this one.
func tieToParent(*exec.Cmd) {}
