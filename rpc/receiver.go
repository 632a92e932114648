package rpc

type receiving struct{}

func (r *receiving) item(body []byte) error { return nil }
func (r *receiving) finish(c *call)         {}
