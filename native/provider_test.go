package native

import (
	"testing"

	"github.com/rdmactor/rdmactor/internal/hca"
)

func TestImportIsEnough(t *testing.T) {
	if p, ok := hca.Library().(Provider); !ok {
		t.Errorf("the provider of other devices is %T", p)
	}
}
