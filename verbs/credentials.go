package verbs

import "fmt"

// CredentialsError reports that the kernel refuses commands from this process, or from some of its
// threads, on a device file that the process has open. The kernel checks that the thread which
// sends a command has the same credentials object as the thread that opened the file. setuid(2),
// capset(2) and similar calls give each thread of a Go program a new one, even if nothing changes.
// The process cannot undo that. It must change its credentials before it executes the program, or
// execute itself again afterwards. errors.Is finds EACCES.
type CredentialsError struct {
	File string // "rdma_cm", "uverbs0"
	Err  error  // EACCES
}

// Error describes the problem and the remedy.
func (e *CredentialsError) Error() string {
	return fmt.Sprintf("%s: the credentials of this process's threads are not those that the file was opened with (%v): "+
		"change them (setuid and its like) before the program is executed, or let it exec itself afterwards", e.File, e.Err)
}

// Unwrap returns Err, which is EACCES.
func (e *CredentialsError) Unwrap() error { return e.Err }
