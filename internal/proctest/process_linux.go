package proctest

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// tie has a process end with this one, also if this one is killed.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL} }

// Freeze has all its threads stand still: until they do, it may take what is sent.
func (p *Process) Freeze() {
	p.t.Helper()
	p.Signal(unix.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
		p.t.Fatal(err)
	}
}
