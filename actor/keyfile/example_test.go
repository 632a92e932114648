package keyfile_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// A file with the key of a client is created, and the program that has it uses PSK mode.
func Example() {
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "ann.key")
	key, err := keyfile.Generate("ann")
	if err != nil {
		log.Fatal(err)
	}
	if err := keyfile.Create(name, key); err != nil {
		log.Fatal(err)
	}

	list, err := keyfile.Load(name)
	if err != nil {
		log.Fatal(err)
	}
	keys := new(rdma.Keyring)
	if err := keyfile.Use(keys, list); err != nil {
		log.Fatal(err)
	}
	fmt.Println(list[0]) // prints no key
	clear(list)
	security := &rdma.Security{Mode: rdma.PSK, Keys: keys} // for rdma.Config
	fmt.Println(security.Mode)
	// Output:
	// ann
	// PSK
}
