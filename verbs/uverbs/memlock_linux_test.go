package uverbs

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMemlockSaysWhatToDo: the first words after the errno are the limit and how to raise it far
// enough. A limit that has room for only this region would not help, because more regions follow.
func TestMemlockSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		e    MemlockError
		want string
	}{
		{MemlockError{Limit: 1 << 16, Need: 1 << 18, Err: unix.ENOMEM}, "cannot allocate memory, because RLIMIT_MEMLOCK is 65536 bytes: raise it"},
		{MemlockError{Limit: 1 << 23, Need: 1 << 18, Err: unix.EAGAIN}, "resource temporarily unavailable, probably because RLIMIT_MEMLOCK is"},
	} {
		text := c.e.Error()
		if !strings.HasPrefix(text, c.want) || !strings.Contains(text, "ulimit -l") || !strings.Contains(text, "LimitMEMLOCK") {
			t.Errorf("%q, want %q and how", text, c.want)
		}
		if !errors.Is(&c.e, c.e.Err) {
			t.Errorf("%q is not %v", text, c.e.Err)
		}
	}
	if err := memlockError(unix.EINVAL, 1); !errors.Is(err, unix.EINVAL) || errors.As(err, new(*MemlockError)) {
		t.Errorf("what has nothing to do with the limit is %v", err)
	}
}
