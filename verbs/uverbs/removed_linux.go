package uverbs

import "golang.org/x/sys/unix"

// Removed says that the kernel is removing the device. rxe and siw wait with that until nobody has them open, and tell nobody: what is
// outstanding is flushed, and everything that the kernel waits for is given back at once. Memory stays until Free.
func (d *device) Removed() {
	if d.closed || d.k.fd < 0 {
		return
	}
	d.fail(unix.ENODEV)
	for _, q := range d.qps {
		q.forget()
	}
	for _, h := range d.handles {
		_ = h.(closer).release()
	}
	clear(d.handles)
	for _, fd := range []*int{&d.comp, &d.async} {
		_ = unix.Close(*fd)
		*fd = -1
	}
	_ = d.k.close(0)
}
