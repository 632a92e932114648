//go:build amd64 || arm64

package native

// siwCover is the number of completions for which a queue of soft-iWARP's covers the first MiB of
// its mappings.
const siwCover = 1 << 15

// coverRefused makes an unused completion queue. If a queue's memory is mapped at 0x90000,
// soft-iWARP's driver in the library takes that for the kernel's failure to map it
// (SIW_INVAL_UOBJ_KEY), and refuses the queue without an errno: this happens to one of the first
// twenty connections. The kernel gives each queue the first place with enough room. So the first
// queue covers that place, and stays until the device is closed.
func (a *adapter) coverRefused() error {
	cq, err := a.page.callObject(a.createCQ, a.ctx, siwCover, 0, 0, 0)
	if err != nil {
		return err
	}
	a.recordObject(cqObject, cq, nil)
	return nil
}
