module github.com/rdmactor/rdmactor/native

go 1.26.0

require (
	github.com/ebitengine/purego v0.11.3
	github.com/rdmactor/rdmactor v0.0.0-00010101000000-000000000000
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.49.0
)

replace github.com/rdmactor/rdmactor => ..
