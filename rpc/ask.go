package rpc

type asking struct{}

func (a *asking) finish(c *call) {}
