package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/nldev"
)

const (
	procRoom = 1024 // bytes read of a file in /proc: the fields used are at its start
	attempts = 5    // for a table that changes while it is read
)

// Devices returns the names of the kernel's devices.
func Devices() (names []string, err error) {
	devices, err := nldev.Devices()
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return names, err
}

// IDs returns the kernel's table, of all devices. steady is false if it changed during each attempt
// to read it: then an identifier may be missing, or in it twice.
func IDs() (ids []ID, steady bool, err error) {
	devices, err := nldev.Devices()
	if err != nil {
		return nil, false, err
	}
	steady = true
	for _, d := range devices {
		of, err := idsOf(d)
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENODEV): // the device is gone
			continue
		case errors.Is(err, errChanged):
			steady = false
		case err != nil:
			return nil, false, fmt.Errorf("%s: %w", d.Name, err)
		}
		ids = append(ids, of...)
	}
	for i := range ids {
		if ids[i].PID != 0 {
			ids[i].Command = strings.TrimSuffix(string(readProcFile(ids[i].PID, "comm")), "\n")
			ids[i].Process = processOf(readProcFile(ids[i].PID, "status"))
		}
	}
	return ids, steady, nil
}

// readProcFile returns the beginning of a thread's file, or nothing if the thread is gone.
func readProcFile(thread uint32, name string) []byte {
	f, err := os.Open("/proc/" + strconv.FormatUint(uint64(thread), 10) + "/" + name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, procRoom)
	n, err := f.Read(b)
	if err != nil {
		return nil
	}
	return b[:n]
}

// idsOf returns the table of one device. With errChanged it is the last one read.
func idsOf(d nldev.Device) (ids []ID, err error) {
	which := nldev.Attr(nil, nldev.Index, binary.NativeEndian.AppendUint32(nil, d.Index))
	for range attempts {
		ids = ids[:0]
		changed, err := nldev.Ask(resCMID, true, which, func(payload []byte) (err error) {
			ids, err = parseIDs(payload, ids)
			return err
		})
		if err != nil || !changed {
			return ids, err
		}
	}
	return ids, errChanged
}
