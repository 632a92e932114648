package proctest

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// tieToParent makes a process end with this one, even if this one is killed.
func tieToParent(cmd *exec.Cmd) { cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL} }

// Freeze stops all its threads, and waits until they have stopped: before that they may still
// receive.
func (p *Process) Freeze() {
	p.t.Helper()
	p.Signal(unix.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
		p.t.Fatal(err)
	}
}
