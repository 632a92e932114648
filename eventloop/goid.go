package eventloop

import "runtime"

// goroutineID reads the calling goroutine's id from the first line of its stack trace, "goroutine 7 [running]:", the only place
// where Go tells it. 0 would mean that the format changed; a test watches that.
func goroutineID() (id uint64) {
	var buf [40]byte
	line := buf[:runtime.Stack(buf[:], false)]
	const prefix = "goroutine "
	if len(line) < len(prefix) || string(line[:len(prefix)]) != prefix {
		return 0
	}
	for _, c := range line[len(prefix):] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uint64(c-'0')
	}
	return id
}
