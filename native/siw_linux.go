//go:build amd64 || arm64

package native

// siwCover is how many completions it takes for a queue of soft-iWARP's to cover the first MiB of
// what it maps.
const siwCover = 1 << 15

// coverRefused makes a completion queue that nobody uses. soft-iWARP's driver in the library takes
// the place 0x90000 of a queue's memory for the kernel's failure to map it (SIW_INVAL_UOBJ_KEY). It
// then refuses the queue that is there, without an errno: one of the first twenty connections. The
// kernel gives each queue the first place with enough room. So the first queue covers that one, and
// stays until the device is closed.
func (a *adapter) coverRefused() error {
	cq, err := a.page.object(a.createCQ, a.ctx, siwCover, 0, 0, 0)
	if err != nil {
		return err
	}
	a.created(cqObject, cq, nil)
	return nil
}
