package uverbs

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// Denied finds out what EACCES says that the kernel has answered to a command written to fd, a
// device file that is known as file: that it takes none from this thread, which is a
// *verbs.CredentialsError, or the command's own refusal. again writes the command, which was not
// executed, once more; Denied returns its answer. Any goroutine.
func Denied(fd int, file string, again func() (int, error)) (int, error) {
	runtime.LockOSThread() // both calls are to be made on one thread
	defer runtime.UnlockOSThread()
	if !Allowed(fd) {
		return 0, &verbs.CredentialsError{File: file, Err: unix.EACCES}
	}
	return again()
}

// Allowed says whether the kernel takes commands to fd, a device file, from this thread. What is
// too short to be a command is refused, but only after the credentials were compared.
func Allowed(fd int) bool {
	_, err := unix.Write(fd, []byte{0})
	return !errors.Is(err, unix.EACCES)
}

// denied says whether err is a *verbs.CredentialsError.
func denied(err error) bool {
	var c *verbs.CredentialsError
	return errors.As(err, &c)
}
