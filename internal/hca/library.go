package hca

import (
	"sync/atomic"

	"github.com/rdmactor/rdmactor/verbs"
)

var (
	library   atomic.Pointer[verbs.Provider]
	preferred atomic.Bool
)

// SetLibrary makes p the provider of devices that the project's own code does not drive. The module
// native calls it when it is linked into the program.
func SetLibrary(p verbs.Provider) { library.Store(&p) }

// Library returns the provider set by SetLibrary, or nil.
func Library() verbs.Provider {
	if p := library.Load(); p != nil {
		return *p
	}
	return nil
}

// PreferLibrary makes Library open rxe and siw, too. Tests call it, to run through libibverbs.
func PreferLibrary() { preferred.Store(true) }

// Preferred is Library if it is to open every device, else nil.
func Preferred() verbs.Provider {
	if !preferred.Load() {
		return nil
	}
	return Library()
}
