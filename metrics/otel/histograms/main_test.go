package histograms

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }
