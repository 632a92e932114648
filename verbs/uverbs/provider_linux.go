package uverbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// Provider opens rxe and siw devices. The zero value is ready.
type Provider struct{}

// Open opens the device of that name. An error says what is missing: the device's file (module
// ib_uverbs), or the permission to open it. For a device of another driver than rxe and siw it is
// verbs.ErrNotSupported.
func (Provider) Open(l *eventloop.Loop, id verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	d, err := open(l, id)
	if err != nil {
		return nil, fmt.Errorf("uverbs: %s: %w", id.Name, err)
	}
	return d, nil
}

const (
	sysClass = "/sys/class/infiniband_verbs"
	devDir   = "/dev/infiniband"
)

// find returns the file of the device called name.
func find(name string) (string, error) {
	entries, err := os.ReadDir(sysClass)
	if errors.Is(err, unix.ENOENT) {
		return "", fmt.Errorf("no %s: is the module ib_uverbs loaded? %w", sysClass, unix.ENODEV)
	}
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		ibdev, err := os.ReadFile(filepath.Join(sysClass, e.Name(), "ibdev"))
		if err == nil && strings.TrimSpace(string(ibdev)) == name {
			return filepath.Join(devDir, e.Name()), nil
		}
	}
	return "", fmt.Errorf("not among the %d devices of %s: %w", len(entries), sysClass, unix.ENODEV)
}

func open(l *eventloop.Loop, id verbs.DeviceIdent) (*device, error) {
	path, err := find(id.Name)
	if err != nil {
		return nil, err
	}
	k, err := openKernel(path)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, fmt.Errorf("%w (devices are made by udev, or must be given to a container)", err)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("%w (read and write permission is needed)", err)
	case err != nil:
		return nil, err
	}
	d := &device{
		loop: l, name: id.Name, file: filepath.Base(path), k: k, async: -1, comp: -1,
		handles: make(map[uint64]any), qps: make(map[uint32]*queuePair), domains: make(map[*domain]struct{}),
		cqs: make(map[*completionQueue]struct{}),
	}
	if err := d.begin(id.GUID); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// begin queries the device and registers its fds with the loop.
func (d *device) begin(guid uint64) error {
	ctx, err := call[ask, getContextResp](d.k, cmdGetContext, ask{})
	if err != nil {
		return fmt.Errorf("get_context: %w", err)
	}
	d.async = int(ctx.AsyncFD)
	if err := d.query(guid); err != nil {
		return err
	}
	pd, err := d.newDomain()
	if err != nil {
		return err
	}
	d.pd = pd
	channel, err := call[ask, createCompChannelResp](d.k, cmdCreateCompChannel, ask{})
	if err != nil {
		return fmt.Errorf("create_comp_channel: %w", err)
	}
	d.comp = int(channel.FD)
	if err := firstError(unix.SetNonblock(d.async, true), unix.SetNonblock(d.comp, true)); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	if d.asyncReg, err = d.loop.Add(d.async, eventloop.Readable, asyncEvents{d}); err != nil {
		return err
	}
	d.compReg, err = d.loop.Add(d.comp, eventloop.Readable, compEvents{d})
	return err
}
