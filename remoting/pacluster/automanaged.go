package pacluster

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/labstack/echo/v4"
)

// defaultRefresh is how often the automanaged provider asks all members.
const defaultRefresh = 500 * time.Millisecond

// Automanaged is Proto.Actor's provider that needs no server: each member answers a small HTTP
// request, and asks all others each Refresh whether they do. Who does not answer is no member any
// more.
//
// Proto.Actor's own constructors listen on all addresses, print, and only log that the port is
// taken. This one listens where Listen says, and has Start fail.
type Automanaged struct {
	// Listen is where this member answers.
	Listen string
	// Members are where all members answer, the same list for each. This one's Listen is added if
	// it is not there.
	Members []string
	// Refresh is how often all are asked. 0: each 500 ms. Who has been killed is found within it.
	// Who stands still is found within 2 s more, which is how long Proto.Actor waits for an answer.
	Refresh time.Duration
}

// Provider returns the provider, for [Config.Provider]. It serves one Start.
func (a Automanaged) Provider() (cluster.ClusterProvider, error) {
	_, text, err := net.SplitHostPort(a.Listen)
	if err != nil {
		return nil, fmt.Errorf("pacluster: automanaged: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("pacluster: automanaged: port %q: %w", text, err)
	}
	if a.Refresh <= 0 {
		a.Refresh = defaultRefresh
	}
	members := a.Members
	if !slices.Contains(members, a.Listen) {
		members = append(slices.Clip(members), a.Listen)
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true // it prints them
	e.Logger.SetOutput(io.Discard)
	e.Server.ReadHeaderTimeout, e.Server.IdleTimeout = a.Refresh+2*time.Second, time.Minute
	return &automanagedProvider{automanaged.NewWithTesting(a.Refresh, port, e, members...), e, a.Listen, port}, nil
}

type automanagedProvider struct {
	*automanaged.AutoManagedProvider
	echo   *echo.Echo
	listen string
	port   int
}

// StartMember implements cluster.ClusterProvider.
func (p *automanagedProvider) StartMember(c *cluster.Cluster) error {
	l, err := net.Listen("tcp", p.listen)
	if err != nil {
		return err
	}
	p.echo.Listener = l
	host, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return err
	}
	p.echo.GET("/_health", func(ctx echo.Context) error {
		return ctx.JSON(http.StatusOK, automanaged.NewNode(c.Config.Name, c.ActorSystem.ID, host, port, p.port, c.GetClusterKinds()))
	})
	return p.AutoManagedProvider.StartMember(c)
}
