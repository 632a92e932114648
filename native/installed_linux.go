//go:build amd64 || arm64

package native

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Installed loads libibverbs, and returns its file and the drivers that it has. It is for programs
// that examine a machine: opening a device does not require it. The error is a *LibraryError if the
// library is missing or too old, otherwise a *CallError; known facts are returned with it. Any
// goroutine. The library stays loaded.
func Installed() (Library, error) {
	lib, err := libibverbs()
	if err != nil {
		return Library{}, err
	}
	l := Library{File: lib.file}
	p, err := lib.newPage()
	if err != nil {
		return l, err
	}
	defer p.release()
	n, at := scratchVar[int32](p, 0)
	list, err := p.callObject(lib.getDeviceList, at)
	if err == nil {
		for i := range uintptr(*n) {
			name, _ := p.invoke(lib.getDeviceName.addr, peek[uintptr](list, i*8))
			l.Devices = append(l.Devices, stringAt(name, deviceNameLen))
		}
		p.invoke(lib.freeDeviceList.addr, list)
	}
	maps, _ := os.ReadFile("/proc/self/maps") // on an error their versions are unknown
	l.Drivers = loadedDrivers(maps)
	return l, err
}

// driverFile matches the files of libibverbs' drivers: libsiw-rdmav34.so, libmlx5.so.1.24.44.0.
var driverFile = regexp.MustCompile(`^lib([a-z0-9_]+-rdmav[0-9]+\.so|(efa|hns|mana|mlx4|mlx5)\.so\.[0-9.]+)$`)

// loadedDrivers returns the drivers in a process's maps.
func loadedDrivers(maps []byte) (files []string) {
	for line := range bytes.Lines(maps) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			continue
		}
		if file := filepath.Base(fields[len(fields)-1]); driverFile.MatchString(file) && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}
