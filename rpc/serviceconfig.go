package rpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// ServiceConfig has settings of a client for what it calls.
type ServiceConfig struct {
	// Methods has settings of methods, by name: of one method ("shop.Orders/Get"), of all methods
	// of a service ("shop.Orders/"), or of all methods (""). Only the most specific entry counts
	// for a call. For each field the first one that is set counts: of this entry, of the method
	// (MethodConfig), of the client (ClientConfig). The deadline of a call's context, and
	// GoConfig.Timeout, precede all of them. Codec is not used here.
	Methods map[string]MethodConfig
	// Health names the service whose health a pool watches ("" is the whole server), over a stream
	// to each server (package rpchealth, or gRPC's health service). A server gets calls while it
	// reports that the service serves. One without a health service, or that refuses the stream,
	// serves; one that reports nothing does not. The streams count in InFlight and MaxCalls, and
	// not in MaxStreams. nil: no health is watched.
	Health *string
}

// ParseServiceConfig reads a ServiceConfig from JSON, in the form of gRPC's service config:
//
//	{"methodConfig": [{
//	  "name": [{"service": "shop.Orders", "method": "Get"}],
//	  "timeout": "1.5s",
//	  "waitForReady": true,
//	  "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "1s"},
//	  "maxRequestMessageBytes": 65536,
//	  "maxResponseMessageBytes": 1048576,
//	  "idempotent": true
//	 }],
//	 "healthCheckConfig": {"serviceName": "shop.Orders"}}
//
// A name without a method is for all methods of the service, an empty one for all methods. Which
// calls are repeated depends on their fate (Retry), and waits double. So of the retry policy
// retryableStatusCodes may only have "UNAVAILABLE", and backoffMultiplier may only be 2. Other
// values and unknown fields are errors, as are a name that is there twice and values that are not
// positive.
func ParseServiceConfig(text []byte) (ServiceConfig, error) {
	var file struct {
		MethodConfig []struct {
			Name []struct{ Service, Method string }

			Timeout     seconds
			RetryPolicy *struct {
				MaxAttempts                int
				InitialBackoff, MaxBackoff seconds
				BackoffMultiplier          *float64
				RetryableStatusCodes       []string
			}
			MaxRequestMessageBytes  *int
			MaxResponseMessageBytes *int
			WaitForReady            bool
			Idempotent              bool
		}
		HealthCheckConfig *struct{ ServiceName string }
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return ServiceConfig{}, fmt.Errorf("rpc: service config: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return ServiceConfig{}, errors.New("rpc: service config: there is more behind it")
	}
	all := make(map[string]MethodConfig)
	for i, entry := range file.MethodConfig {
		invalid := func(format string, args ...any) error {
			return fmt.Errorf("rpc: service config: methodConfig[%d]: %s", i, fmt.Sprintf(format, args...))
		}
		cfg := MethodConfig{Idempotent: entry.Idempotent, Timeout: time.Duration(entry.Timeout), WaitForReady: entry.WaitForReady}
		if p := entry.RetryPolicy; p != nil {
			cfg.Retry = Retry{Attempts: p.MaxAttempts, Backoff: time.Duration(p.InitialBackoff), Max: time.Duration(p.MaxBackoff)}
			if p.MaxAttempts < 1 {
				return ServiceConfig{}, invalid("maxAttempts is %d, at least 1", p.MaxAttempts)
			}
			if m := p.BackoffMultiplier; m != nil && *m != 2 {
				return ServiceConfig{}, invalid("backoffMultiplier is %v, and waits double: leave it out, or 2", *m)
			}
			for _, code := range p.RetryableStatusCodes {
				if code != "UNAVAILABLE" {
					return ServiceConfig{}, invalid("retryableStatusCodes has %q, and only UNAVAILABLE calls are repeated", code)
				}
			}
		}
		if n := entry.MaxRequestMessageBytes; n != nil {
			if cfg.MaxRequest = *n; *n < 1 {
				return ServiceConfig{}, invalid("maxRequestMessageBytes is %d, at least 1", *n)
			}
		}
		if n := entry.MaxResponseMessageBytes; n != nil {
			if cfg.MaxResponse = *n; *n < 1 {
				return ServiceConfig{}, invalid("maxResponseMessageBytes is %d, at least 1", *n)
			}
		}
		if len(entry.Name) == 0 {
			return ServiceConfig{}, invalid("there is no name")
		}
		for _, name := range entry.Name {
			key := name.Service + "/" + name.Method
			switch {
			case name.Service == "" && name.Method != "":
				return ServiceConfig{}, invalid("method %q has no service", name.Method)
			case name.Service == "":
				key = ""
			}
			if _, twice := all[key]; twice {
				return ServiceConfig{}, invalid("%q is there twice", key)
			}
			all[key] = cfg
		}
	}
	cfg := ServiceConfig{Methods: all}
	if h := file.HealthCheckConfig; h != nil {
		cfg.Health = &h.ServiceName
	}
	return cfg, nil
}

// seconds is a duration as protobuf's JSON has it: "1.5s".
type seconds time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (s *seconds) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	if err != nil {
		return fmt.Errorf("a duration is text, such as \"1.5s\": %s", b)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("a duration of %v: it must be positive", d)
	}
	*s = seconds(d)
	return nil
}

// configOf returns the entry for a method.
func (s *ServiceConfig) configOf(name string) MethodConfig {
	if cfg, ok := s.Methods[name]; ok {
		return cfg
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		if cfg, ok := s.Methods[name[:i+1]]; ok {
			return cfg
		}
	}
	return s.Methods[""]
}

// mergeWith returns c, with the fields of other where c has none.
func (c MethodConfig) mergeWith(other *MethodConfig) MethodConfig {
	c.Idempotent, c.WaitForReady = c.Idempotent || other.Idempotent, c.WaitForReady || other.WaitForReady
	c.Timeout = cmp.Or(c.Timeout, other.Timeout)
	c.MaxRequest, c.MaxResponse = cmp.Or(c.MaxRequest, other.MaxRequest), cmp.Or(c.MaxResponse, other.MaxResponse)
	if c.Retry.Attempts <= 0 {
		c.Retry = other.Retry
	}
	return c
}

// methodSettings returns how this client calls a method. The caller must not change it.
func (c *Client) methodSettings(m *method) *MethodConfig {
	if all := c.merged.Load(); all != nil && m.index < len(*all) && (*all)[m.index] != nil {
		return (*all)[m.index]
	}
	of := m.cfg
	if len(c.cfg.Service.Methods) > 0 {
		of = c.cfg.Service.configOf(m.name).mergeWith(&m.cfg)
	}
	of = of.mergeWith(&MethodConfig{Timeout: c.cfg.Timeout, Retry: c.cfg.Retry, WaitForReady: c.cfg.WaitForReady})
	c.mu.Lock()
	defer c.mu.Unlock()
	var before []*MethodConfig
	if all := c.merged.Load(); all != nil {
		before = *all
	}
	all := make([]*MethodConfig, max(len(before), m.index+1))
	copy(all, before)
	all[m.index] = &of
	c.merged.Store(&all)
	return &of
}
