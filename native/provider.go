package native

import (
	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// Provider opens devices through libibverbs. The zero value is ready.
type Provider struct{}

var _ verbs.Provider = Provider{}

func init() { hca.SetLibrary(Provider{}) }
