# The rest needs no make: go test ./..., and .ci/run is everything a change must pass.
.PHONY: test-modules test-vm vm

# The modules of their own. remoting/pacluster needs etcd, Debian's package etcd-server.
test-modules:
	set -e; for module in cmd/rdmactor cmd/protoc-gen-go-rdmactor examples lab remoting/pacluster native traces codec/compress metrics/prom metrics/otel; do go -C $$module test ./...; done

# The tests that need the kernel's RDMA stack, in virtual machines: CONTRIBUTING.md.
test-vm:
	go test -tags vm -p 1 -count=1 -timeout 20m ./lab/vm/...

# A shell in such a machine; KERNEL=6.12 for the newer one.
KERNEL ?= 6.1
vm:
	go run ./lab/vm/shell -kernel $(KERNEL)
