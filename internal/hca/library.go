package hca

import (
	"sync/atomic"

	"github.com/rdmactor/rdmactor/verbs"
)

var library atomic.Pointer[verbs.Provider]

// SetLibrary makes p the provider of devices that the project's own code does not drive. The module
// native calls it when it is linked into the program.
func SetLibrary(p verbs.Provider) { library.Store(&p) }

// Library is what SetLibrary was called with, or nil.
func Library() verbs.Provider {
	if p := library.Load(); p != nil {
		return *p
	}
	return nil
}
