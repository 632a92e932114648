package verbs

import "fmt"

// CredentialsError says that the kernel takes no commands from this process, or from some of its
// threads, for a device's file that it has open: it compares the credentials of the thread that
// commands with those of the thread that has opened the file, by identity. setuid(2), capset(2) and
// their like give each thread of a Go program credentials of its own, even if nothing changes.
// There is no way back for the process: it changes them before it executes the program, or executes
// itself again afterwards. errors.Is finds EACCES.
type CredentialsError struct {
	File string // which file: "rdma_cm", "uverbs0"
	Err  error  // EACCES
}

// Error says so, and what to do.
func (e *CredentialsError) Error() string {
	return fmt.Sprintf("%s: the credentials of this process's threads are not those that the file was opened with (%v): "+
		"change them (setuid and its like) before the program is executed, or let it exec itself afterwards", e.File, e.Err)
}

// Unwrap gives EACCES.
func (e *CredentialsError) Unwrap() error { return e.Err }
