package uverbs

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// Denied finds out why the kernel has answered EACCES to a command that was written to fd, the
// device file named file. Either the kernel takes no commands from this thread, and the result is
// a *verbs.CredentialsError. Or it has refused this command. again writes the command once more;
// the first one was not executed. Denied returns the answer of again. Any goroutine.
func Denied(fd int, file string, again func() (int, error)) (int, error) {
	runtime.LockOSThread() // both calls are to be made on one thread
	defer runtime.UnlockOSThread()
	if !Allowed(fd) {
		return 0, &verbs.CredentialsError{File: file, Err: unix.EACCES}
	}
	return again()
}

// Allowed reports whether the kernel accepts commands to fd, a device file, from this thread. It
// writes something that is too short to be a command: the kernel refuses that, but only after it
// compared the credentials.
func Allowed(fd int) bool {
	_, err := unix.Write(fd, []byte{0})
	return !errors.Is(err, unix.EACCES)
}

// isDenied reports whether err is a *verbs.CredentialsError.
func isDenied(err error) bool {
	var c *verbs.CredentialsError
	return errors.As(err, &c)
}
