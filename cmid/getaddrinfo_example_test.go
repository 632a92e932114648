package cmid_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
)

func ExampleLookupAddrInfo() {
	list, err := cmid.LookupAddrInfo(context.Background(), "", "7471", &cmid.AddrInfo{Flags: cmid.RAIPassive, PortSpace: cmid.PortSpaceTCP})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("listen on", list[0].Src)

	_, err = cmid.LookupAddrInfo(context.Background(), "server:7471", "", nil)
	fmt.Println(err)
	fmt.Println(errors.Is(err, cmid.EAINoName))
	// Output:
	// listen on 0.0.0.0:7471
	// getaddrinfo node "server:7471": node not known: it is neither a name nor an address: check the IPv6 address; a port is given as the service [EAI_NONAME]
	// true
}
