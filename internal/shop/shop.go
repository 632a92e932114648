// Package shop is generated from shop.proto, with every kind of method. Its tests are those of the
// generated code.
package shop

//go:generate go build -C ../../cmd/protoc-gen-go-rdmactor -o ../../protoc-gen-go-rdmactor .
//go:generate protoc -I../.. --plugin=../../protoc-gen-go-rdmactor --go_out=../.. --go_opt=paths=source_relative --go-rdmactor_out=../.. --go-rdmactor_opt=paths=source_relative internal/shop/shop.proto
//go:generate rm ../../protoc-gen-go-rdmactor
