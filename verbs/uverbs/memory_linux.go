package uverbs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hostlimits"
	"github.com/rdmactor/rdmactor/verbs"
)

func (d *device) newDomain() (*domain, error) {
	handle, err := d.hw.AllocPD()
	if err != nil {
		return nil, fmt.Errorf("alloc_pd: %w", d.explainLimit(err))
	}
	p := &domain{dev: d, handle: handle, mrs: make(map[*verbs.MR]region)}
	d.domains[p] = struct{}{}
	return p, nil
}

// AllocPD makes a protection domain.
func (d *device) AllocPD() (verbs.PD, error) {
	if err := d.goneError(); err != nil {
		return nil, err
	}
	p, err := d.newDomain()
	if err != nil {
		return nil, fmt.Errorf("uverbs: %s: %w", d.name, err)
	}
	return p, nil
}

// domainOf returns pd as a domain of this device; a nil pd means the device's own domain.
func (d *device) domainOf(pd verbs.PD) (*domain, error) {
	if pd == nil {
		return d.pd, nil
	}
	if p, ok := pd.(*domain); ok && p.dev == d && !p.gone {
		return p, nil
	}
	return nil, fmt.Errorf("uverbs: not a protection domain of %s: %w", d.name, unix.EINVAL)
}

// Alloc maps and registers n bytes. The error is a *MemlockError if RLIMIT_MEMLOCK forbids it, and
// a *CgroupError if a control group does.
func (p *domain) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	d := p.dev
	if err := d.goneError(); err != nil {
		return nil, err
	}
	switch {
	case n <= 0 || uint64(n) > math.MaxUint32:
		return nil, fmt.Errorf("uverbs: memory region of %d bytes: %w", n, unix.EINVAL)
	case access&^(verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic) != 0:
		return nil, fmt.Errorf("uverbs: memory region with unknown access %#x: %w", access, unix.EINVAL)
	case access&(verbs.RemoteWrite|verbs.RemoteAtomic) != 0 && access&verbs.LocalWrite == 0:
		return nil, fmt.Errorf("uverbs: memory region with remote write but without local write: %w", unix.EINVAL)
	case access&verbs.RemoteAtomic != 0 && !d.attr.Atomics:
		return nil, fmt.Errorf("uverbs: memory region with remote atomic: %w", verbs.ErrNotSupported)
	case p.gone:
		return nil, fmt.Errorf("uverbs: memory region in a closed protection domain: %w", unix.EINVAL)
	}
	mem, err := mapMemory(roundToPages(n))
	if err != nil {
		return nil, fmt.Errorf("uverbs: memory of %d bytes: %w", n, memlockError(err, n))
	}
	made, err := d.hw.RegMR(p.handle, mem[:n], access)
	if err != nil {
		if err = d.explainLimit(err); !errors.As(err, new(*CgroupError)) {
			err = memlockError(err, len(mem))
		}
		_ = unmapOnce(&mem)
		return nil, fmt.Errorf("uverbs: %s: reg_mr of %d bytes: %w", d.name, n, err)
	}
	mr := &verbs.MR{PD: p, Bytes: mem[:n:n], Addr: addressOf(mem), LKey: made.LKey, RKey: made.RKey, Access: access}
	p.mrs[mr] = region{handle: made.Handle, mem: mem}
	p.users++
	return mr, nil
}

// stagKey returns the eight bits of an STag that the consumer chooses. They differ each time, so
// that a key is not given out twice when the kernel reuses the rest of the STag.
func (k *kernel) stagKey() uint8 {
	k.stags++
	return k.stags
}

// Free deregisters mr and unmaps its memory. It may be called after the device was closed or
// removed.
func (d *device) Free(mr *verbs.MR) error {
	var p *domain
	if mr != nil {
		p, _ = mr.PD.(*domain)
	}
	if p == nil || p.dev != d {
		return fmt.Errorf("uverbs: not a memory region of %s: %w", d.name, unix.EINVAL)
	}
	r, ok := p.mrs[mr]
	if !ok {
		return fmt.Errorf("uverbs: not a memory region of %s: %w", d.name, unix.EINVAL)
	}
	if d.lost == nil {
		if err := d.hw.DeregMR(r.handle); err != nil {
			return fmt.Errorf("uverbs: %s: dereg_mr: %w", d.name, err)
		}
	}
	delete(p.mrs, mr)
	p.users--
	mr.PD, mr.Bytes = nil, nil
	return unmapOnce(&r.mem)
}

// Close destroys the domain.
func (p *domain) Close() error {
	d := p.dev
	switch {
	case p == d.pd || p.gone || d.closed:
		return fmt.Errorf("uverbs: the device's own protection domain, or one closed before: %w", unix.EINVAL)
	case p.users > 0:
		return fmt.Errorf("uverbs: protection domain with %d regions and queues: %w", p.users, unix.EBUSY)
	}
	if d.lost == nil {
		if err := d.hw.DeallocPD(p.handle); err != nil {
			return fmt.Errorf("uverbs: %s: dealloc_pd: %w", d.name, err)
		}
	}
	p.gone = true
	delete(d.domains, p)
	return nil
}

// placeOf finds the memory of a scatter/gather element. It fails with EINVAL if the memory is
// freed, belongs to another domain, or is outside its region.
func (p *domain) placeOf(s *verbs.SGE) (place, error) {
	switch {
	case s.MR == nil:
		if s.Offset == 0 && s.Length == 0 {
			return place{}, nil
		}
		return place{}, fmt.Errorf("uverbs: scatter/gather element without a memory region: %w", unix.EINVAL)
	case s.MR.PD != p:
		return place{}, fmt.Errorf("uverbs: memory that is freed, or of another protection domain: %w", unix.EINVAL)
	case uint64(s.Offset)+uint64(s.Length) > uint64(len(s.MR.Bytes)):
		return place{}, fmt.Errorf("uverbs: %d bytes at %d of a region of %d: %w", s.Length, s.Offset, len(s.MR.Bytes), unix.EINVAL)
	}
	return place{Addr: s.MR.Addr + uint64(s.Offset), Length: s.Length, LKey: s.MR.LKey}, nil
}

// MemlockError reports that memory was not registered because RLIMIT_MEMLOCK forbids it, or may
// have forbidden it. errors.Is finds the kernel's errno, usually ENOMEM.
type MemlockError struct {
	Limit  uint64 // RLIMIT_MEMLOCK in bytes
	Pinned uint64 // bytes that the process has pinned already, as far as the kernel reports it
	Need   uint64 // bytes that were to be pinned
	Err    error  // the kernel's error
}

// Error describes the remedy. It does not suggest a limit from Need, which is one region only: a
// loop registers more regions over time, so a limit with room for just this one would soon be too
// small.
func (e *MemlockError) Error() string {
	sure := ""
	if !e.isCertain() {
		sure = "probably "
	}
	return fmt.Sprintf("%v, %sbecause RLIMIT_MEMLOCK is %d bytes: raise it to more than all the memory that messages may take "+
		"(ulimit -l unlimited, LimitMEMLOCK=infinity in systemd, --ulimit memlock=-1 for containers); %d are pinned, %d more were asked for now",
		e.Err, sure, e.Limit, e.Pinned, e.Need)
}

// Unwrap returns the kernel's errno.
func (e *MemlockError) Unwrap() error { return e.Err }

// memlockError turns an error of reg_mr or mmap into a *MemlockError if the limit explains the
// error or may explain it. It cannot always be certain, because the kernel does not report its
// counters.
func memlockError(err error, need int) error {
	if !errors.Is(err, unix.ENOMEM) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EAGAIN) {
		return err
	}
	var lim unix.Rlimit
	if e := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); e != nil || lim.Cur == unix.RLIM_INFINITY {
		return err
	}
	e := &MemlockError{Limit: lim.Cur, Pinned: pinnedBytes(), Need: uint64(need), Err: err}
	if !e.isCertain() && hostlimits.MayLock(os.DirFS("/")) {
		return err
	}
	return e
}

// isCertain reports whether the limit explains the error.
func (e *MemlockError) isCertain() bool { return e.Pinned+e.Need > e.Limit }

// pinnedBytes returns how many bytes of the process are pinned or locked by the kernel's count; 0
// if the kernel does not report it.
func pinnedBytes() (n uint64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if name, value, ok := strings.Cut(line, ":"); ok && (name == "VmPin" || name == "VmLck") {
			kb, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			n += kb << 10
		}
	}
	return n
}

// Alloc makes a memory region in the device's own domain.
func (d *device) Alloc(n int, access verbs.Access) (*verbs.MR, error) { return d.pd.Alloc(n, access) }

func badWR(format string, args ...any) error {
	return fmt.Errorf("uverbs: %s: %w", fmt.Sprintf(format, args...), unix.EINVAL)
}

// checkRecv checks a receive and returns its place.
func (p *domain) checkRecv(wr *verbs.RecvWR) (place, error) {
	if wr.SGE.MR != nil && wr.SGE.MR.Access&verbs.LocalWrite == 0 {
		return place{}, badWR("receive into a region without local write")
	}
	return p.placeOf(&wr.SGE)
}
