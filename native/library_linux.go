//go:build amd64 || arm64

package native

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// soname is the library's name. All its versions since 2007 have the structs of mirrors_linux.go.
const soname = "libibverbs.so.1"

// verb is a function of the library.
type verb struct {
	symbol string
	addr   uintptr
}

// library is libibverbs.
type library struct {
	file          string // with its version: libibverbs.so.1.14.44.0
	errnoLocation uintptr

	getDeviceList, freeDeviceList, getDeviceName, getDeviceGUID verb
	openDevice, closeDevice, queryDevice, queryPort             verb
	allocPD, deallocPD, regMR, deregMR                          verb
	createChannel, destroyChannel, createCQ, destroyCQ          verb
	getCQEvent, ackCQEvents, createSRQ, modifySRQ               verb
	destroySRQ, createQP, modifyQP, queryQP                     verb
	destroyQP, createAH, destroyAH, attachMcast                 verb
	detachMcast, getAsyncEvent, ackAsyncEvent                   verb
}

// verbSymbols returns the functions and their symbols.
func (l *library) verbSymbols() map[*verb]string {
	return map[*verb]string{
		&l.getDeviceList:  "ibv_get_device_list",
		&l.freeDeviceList: "ibv_free_device_list",
		&l.getDeviceName:  "ibv_get_device_name",
		&l.getDeviceGUID:  "ibv_get_device_guid",
		&l.openDevice:     "ibv_open_device",
		&l.closeDevice:    "ibv_close_device",
		&l.queryDevice:    "ibv_query_device",
		&l.queryPort:      "ibv_query_port",
		&l.allocPD:        "ibv_alloc_pd",
		&l.deallocPD:      "ibv_dealloc_pd",
		&l.regMR:          "ibv_reg_mr",
		&l.deregMR:        "ibv_dereg_mr",
		&l.createChannel:  "ibv_create_comp_channel",
		&l.destroyChannel: "ibv_destroy_comp_channel",
		&l.createCQ:       "ibv_create_cq",
		&l.destroyCQ:      "ibv_destroy_cq",
		&l.getCQEvent:     "ibv_get_cq_event",
		&l.ackCQEvents:    "ibv_ack_cq_events",
		&l.createSRQ:      "ibv_create_srq",
		&l.modifySRQ:      "ibv_modify_srq",
		&l.destroySRQ:     "ibv_destroy_srq",
		&l.createQP:       "ibv_create_qp",
		&l.modifyQP:       "ibv_modify_qp",
		&l.queryQP:        "ibv_query_qp",
		&l.destroyQP:      "ibv_destroy_qp",
		&l.createAH:       "ibv_create_ah",
		&l.destroyAH:      "ibv_destroy_ah",
		&l.attachMcast:    "ibv_attach_mcast",
		&l.detachMcast:    "ibv_detach_mcast",
		&l.getAsyncEvent:  "ibv_get_async_event",
		&l.ackAsyncEvent:  "ibv_ack_async_event",
	}
}

// libibverbs is loaded on first use, and then stays.
var libibverbs = sync.OnceValues(func() (*library, error) { return loadLibrary(soname) })

// loadLibrary loads a library and finds its functions. The error is a *LibraryError.
func loadLibrary(name string) (*library, error) {
	l := &library{file: name}
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, &LibraryError{Library: name, Err: fmt.Errorf("%w: %w", err, unix.ENOENT), Remedy: installHow}
	}
	l.file = loadedFile(name)
	if err := l.resolveVerbs(handle); err != nil {
		return nil, err
	}
	return l, nil
}

const installHow = "install it: Debian and Ubuntu have it in libibverbs1, with the drivers in ibverbs-providers; Fedora and RHEL in " +
	"libibverbs; Alpine in rdma-core"

// resolveVerbs finds the functions.
func (l *library) resolveVerbs(handle uintptr) error {
	var err error
	// in the C library, which is loaded with every dynamic program
	if l.errnoLocation, err = purego.Dlsym(purego.RTLD_DEFAULT, "__errno_location"); err != nil {
		return &LibraryError{Library: "libc", Symbol: "__errno_location", Err: fmt.Errorf("%w: %w", err, unix.ENOSYS), Remedy: "use glibc or musl"}
	}
	for v, symbol := range l.verbSymbols() {
		addr, err := purego.Dlsym(handle, symbol)
		if err != nil {
			return &LibraryError{
				Library: l.file, Symbol: symbol, Err: fmt.Errorf("%w: %w", err, unix.ENOSYS),
				Remedy: "this is another library, or one older than 1.1 of 2007: install rdma-core",
			}
		}
		*v = verb{symbol, addr}
	}
	return nil
}

// loadedFile returns the name of the loaded file, which contains the version.
func loadedFile(name string) string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return name
	}
	stem, _, _ := strings.Cut(filepath.Base(name), ".so")
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if file := filepath.Base(fields[len(fields)-1]); strings.HasPrefix(file, stem+".so") || strings.HasPrefix(file, stem+"-") {
			return file
		}
	}
	return name
}

// callStatus calls a verb that returns 0, an errno, or -1 and sets errno.
func (p *page) callStatus(v verb, args ...uintptr) error {
	ret, errno := p.invoke(v.addr, args...)
	n := int32(ret)
	switch {
	case n == 0:
		return nil
	case n > 0:
		errno = unix.Errno(n)
	case errno == 0 && n < -1:
		errno = unix.Errno(-n)
	case errno == 0:
		errno = unix.EIO
	}
	return &CallError{Library: p.lib.file, Symbol: v.symbol, Err: errno}
}

// callObject calls a verb that returns an object, or NULL and sets errno.
func (p *page) callObject(v verb, args ...uintptr) (uintptr, error) {
	ret, errno := p.invoke(v.addr, args...)
	if ret != 0 {
		return ret, nil
	}
	if errno == 0 { // drivers forget to set it
		return 0, &CallError{Library: p.lib.file, Symbol: v.symbol, Err: fmt.Errorf("has made nothing, and says not why: %w", unix.EIO)}
	}
	return 0, &CallError{Library: p.lib.file, Symbol: v.symbol, Err: errno}
}
