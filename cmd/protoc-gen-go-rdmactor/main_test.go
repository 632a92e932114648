package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/pluginpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the folder from which the generator is called.
const root = "../.."

// current lists the files with committed results.
var current = []string{"internal/shop/shop.proto", "examples/rpc/kv/kv.proto"}

// generated returns the file that the generator makes of a .proto file.
func generated(t *testing.T, file, parameter string) (name, content string) {
	t.Helper()
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	q := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{file}, Parameter: &parameter}
	seen := make(map[string]bool)
	var add func(f linker.File)
	add = func(f linker.File) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.FindImportByPath(f.Imports().Get(i).Path()))
		}
		q.ProtoFile = append(q.ProtoFile, protodesc.ToFileDescriptorProto(f))
	}
	add(files[0])
	runPlugin(func(o protogen.Options, fn func(*protogen.Plugin) error) {
		p, err := o.New(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := fn(p); err != nil {
			t.Fatal(err)
		}
		r := p.Response()
		if r.GetError() != "" || len(r.File) != 1 {
			t.Fatalf("%d files, %s", len(r.File), r.GetError())
		}
		name, content = r.File[0].GetName(), r.File[0].GetContent()
	})
	return name, content
}

// same asserts that the generator's result is the committed file.
func same(t *testing.T, name, content string) {
	t.Helper()
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if content != string(want) {
		t.Errorf("%s is not what is generated now: go generate ./...\n%s", name, content)
	}
}

// The committed files match the generator's output.
func TestCommittedFilesAreCurrent(t *testing.T) {
	for _, file := range current {
		name, content := generated(t, file, "paths=source_relative")
		same(t, filepath.Join(root, name), content)
	}
}

// With package_suffix the file is in a package that imports that of the messages.
func TestPackageSuffix(t *testing.T) {
	name, content := generated(t, "internal/shop/shop.proto", "paths=source_relative,package_suffix=rdma")
	if name != "internal/shop/shoprdma/shop_rdmactor.pb.go" || !strings.Contains(content, "\npackage shoprdma\n") ||
		!strings.Contains(content, "rpc.NewMethod[shop.GetRequest, shop.Order](Orders_Get_Name") {
		t.Errorf("%s:\n%s", name, content)
	}
}

// A file without services makes none.
func TestFileWithoutServices(t *testing.T) {
	q := &pluginpb.CodeGeneratorRequest{}
	runPlugin(func(o protogen.Options, fn func(*protogen.Plugin) error) {
		p, err := o.New(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := fn(p); err != nil || len(p.Response().File) != 0 {
			t.Errorf("%v, %v", p.Response(), err)
		}
	})
}
