package measure

import (
	"errors"
	"os"
	"runtime/pprof"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is what this process has used, in user and in kernel mode.
func CPUTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Profile writes this process's CPU profile to file until stop is called.
func Profile(file string) (stop func() error, err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// Micros is a time in µs.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
