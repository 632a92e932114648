package stats

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessMemory returns a field of proc_pid_status(5) of this process, such as VmRSS or VmHWM, in
// bytes. It returns 0 if there is no such field.
func ProcessMemory(name string) uint64 {
	kib, _, _ := strings.Cut(ProcField("/proc/self/status", name), " ")
	n, _ := strconv.ParseUint(kib, 10, 64) // 0 if it is not there
	return n << 10
}

// ProcField returns the first value of a field of a file in /proc, or "unknown".
func ProcField(file, field string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == field {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// GoMemory runs a garbage collection and returns the memory of this process's Go runtime in bytes:
// the heap in use with its fragments, the stacks, and the runtime's own structures.
func GoMemory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse + m.MSpanInuse + m.MCacheInuse + m.OtherSys + m.GCSys + m.BuckHashSys
}

// CPUTime returns the processor time that this process has used, in user and in kernel mode.
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

// Micros returns d in µs.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// OpenFiles counts the file descriptors of this process whose target in proc_pid_fd(5) begins with
// one of the strings. It returns 0 if there is no /proc.
func OpenFiles(beginnings ...string) (n int) {
	const own = "/proc/self/fd/"
	list, _ := os.ReadDir(own)
	for _, fd := range list {
		to, _ := os.Readlink(own + fd.Name())
		if slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(to, b) }) {
			n++
		}
	}
	return n
}
