package rpc

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestParseServiceConfig(t *testing.T) {
	got, err := ParseServiceConfig([]byte(`{"methodConfig": [
		{"name": [{"service": "shop.Orders", "method": "Get"}, {"service": "shop.Stock"}], "timeout": "1.5s", "idempotent": true, "waitForReady": true,
		 "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "1s"}},
		{"name": [{}], "maxRequestMessageBytes": 100, "maxResponseMessageBytes": 200}], "healthCheckConfig": {"serviceName": "shop.Orders"}}`))
	of := MethodConfig{Timeout: 1500 * time.Millisecond, Idempotent: true, WaitForReady: true, Retry: Retry{4, 10 * time.Millisecond, time.Second}}
	if want := (ServiceConfig{Methods: map[string]MethodConfig{"shop.Orders/Get": of, "shop.Stock/": of, "": {MaxRequest: 100, MaxResponse: 200}}, Health: new("shop.Orders")}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{`:                                     "unexpected EOF",
		`{} {}`:                                 "more behind",
		`{"loadBalancingConfig": []}`:           `unknown field "loadBalancingConfig"`,
		`{"methodConfig": [{"timeout": "1s"}]}`: "no name",
		`{"methodConfig": [{"name": [{"method": "Get"}]}]}`:                                                           "has no service",
		`{"methodConfig": [{"name": [{}]}, {"name": [{}]}]}`:                                                          "twice",
		`{"methodConfig": [{"name": [{}], "timeout": 1}]}`:                                                            "a duration is text",
		`{"methodConfig": [{"name": [{}], "timeout": "soon"}]}`:                                                       "invalid duration",
		`{"methodConfig": [{"name": [{}], "timeout": "-1s"}]}`:                                                        "positive",
		`{"methodConfig": [{"name": [{}], "retryPolicy": {"initialBackoff": "1s"}}]}`:                                 "maxAttempts is 0",
		`{"methodConfig": [{"name": [{}], "maxRequestMessageBytes": 0}]}`:                                             "maxRequestMessageBytes is 0",
		`{"methodConfig": [{"name": [{}], "maxResponseMessageBytes": -1}]}`:                                           "maxResponseMessageBytes is -1",
		`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2, "backoffMultiplier": 1.5}}]}`:             "backoffMultiplier is 1.5",
		`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2, "retryableStatusCodes": ["INTERNAL"]}}]}`: `has "INTERNAL"`,
	} {
		if _, err := ParseServiceConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The most specific entry of the service config precedes the method's settings, and these the
// client's, field by field.
func TestSettingsOfACall(t *testing.T) {
	c := &Client{cfg: ClientConfig{
		Timeout: time.Second, Retry: Retry{Attempts: 2},
		Service: ServiceConfig{Methods: map[string]MethodConfig{
			"shop.Orders/Get": {Timeout: 3 * time.Second, Retry: Retry{Attempts: 1}},
			"shop.Orders/":    {Idempotent: true, MaxRequest: 4, MaxResponse: 5},
			"":                {Timeout: 5 * time.Second},
		}},
	}}
	own := MethodConfig{Timeout: 2 * time.Second, MaxRequest: 9, MaxResponse: 8}
	for i, tt := range []struct {
		name string
		own  MethodConfig
		want MethodConfig
	}{
		{"shop.Orders/Get", own, MethodConfig{Timeout: 3 * time.Second, MaxRequest: 9, MaxResponse: 8, Retry: Retry{Attempts: 1}}},
		{"shop.Orders/Put", own, MethodConfig{Timeout: 2 * time.Second, MaxRequest: 4, MaxResponse: 5, Idempotent: true, Retry: Retry{Attempts: 2}}},
		{"shop.Orders/Put", MethodConfig{}, MethodConfig{Timeout: time.Second, MaxRequest: 4, MaxResponse: 5, Idempotent: true, Retry: Retry{Attempts: 2}}},
		{"shop.Stock/Get", own, MethodConfig{Timeout: 5 * time.Second, MaxRequest: 9, MaxResponse: 8, Retry: Retry{Attempts: 2}}},
		{"plain", MethodConfig{Retry: Retry{Attempts: 7}}, MethodConfig{Timeout: 5 * time.Second, Retry: Retry{Attempts: 7}}},
	} {
		m := &method{name: tt.name, index: i, cfg: tt.own}
		for _, time := range []string{"first", "second"} {
			if got := *c.methodSettings(m); got != tt.want {
				t.Errorf("%s, the %s time: %+v, want %+v", tt.name, time, got, tt.want)
			}
		}
	}
}

// The settings of a method apply to its calls: calls, streams and Go alike.
func TestMethodSettings(t *testing.T) {
	quickly := NewRawMethod("test.Quickly", MethodConfig{Timeout: time.Second, MaxRequest: 10})
	far := NewRawMethod("test.Quickly") // as a client without these settings has it
	var times atomic.Int64
	inWorld(t, rigConfig{client: ClientConfig{Service: ServiceConfig{Methods: map[string]MethodConfig{"test.Echo": {Retry: Retry{Attempts: 3}}}}}, server: ServerConfig{MaxCallsInAll: 1}}, func(s *Server) {
		HandleRaw(s, quickly, func(ctx context.Context, _, _ []byte) ([]byte, error) {
			times.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		handleEcho(s)
	}, func(r *rig) {
		begin := r.Elapsed()
		_, err := CallRaw(r.t.Context(), r.c, quickly, nil, nil)
		if d := r.Elapsed() - begin; !errors.Is(err, ErrDeadline) || d != time.Second {
			r.t.Errorf("%v after %v", err, d)
		}
		r.Wait()            // the server has the place back
		begin = r.Elapsed() // the context's deadline precedes the method's
		_, err = CallRaw(r.within(2*time.Second), r.c, quickly, nil, nil)
		if d := r.Elapsed() - begin; !errors.Is(err, ErrDeadline) || d != 2*time.Second {
			r.t.Errorf("%v after %v", err, d)
		}
		r.Wait()
		for m, fate := range map[RawMethod]Fate{quickly: FateNotSent, far: FateRefused} {
			_, err = CallRaw(r.within(time.Second), r.c, m, make([]byte, 11), nil)
			want(r.t, err, ErrTooLarge, fate)
			if text := fmt.Sprint(err); !strings.Contains(text, "11 bytes, the method takes 10 (MaxRequest") {
				r.t.Error(text)
			}
		}
		if n := times.Load(); n != 2 {
			r.t.Errorf("the handler was called %d times", n)
		}
		// takes the only place
		go func() { _, _ = CallRaw(r.t.Context(), r.c, quickly, nil, nil) }()
		r.Wait()
		_, err = CallRaw(r.t.Context(), r.c, echo, nil, nil)
		if e, _ := err.(*Error); e == nil || e.Attempts != 3 { //nolint:errorlint // Call's errors are
			r.t.Errorf("%v, want 3 attempts", err)
		}
	})
}

// Calls of a method that waits for a connection do so while those of other methods fail: also if
// the client's service config alone has that.
func TestMethodWaitsForReady(t *testing.T) {
	own := NewRawMethod("test.Echo", MethodConfig{WaitForReady: true})
	for name, c := range map[string]struct {
		m       RawMethod
		service ServiceConfig
	}{"method": {own, ServiceConfig{}}, "service config": {echo, ServiceConfig{Methods: map[string]MethodConfig{"test.Echo": {WaitForReady: true}}}}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{client: ClientConfig{Backoff: quick.Backoff, Service: c.service}}, handleEcho, func(r *rig) {
				r.s.Close()
				r.Advance(time.Second)
				_, err := CallRaw(r.t.Context(), r.c, fail, nil, nil)
				want(r.t, err, ErrUnavailable, FateNotSent)
				got := make(chan error, 1)
				go func() { _, err := CallRaw(r.t.Context(), r.c, c.m, nil, nil); got <- err }()
				r.Advance(time.Second)
				if len(got) > 0 {
					r.t.Error("the call has not waited")
				}
				r.again()
				if err := <-got; err != nil {
					r.t.Error(err)
				}
			})
		})
	}
}

// A retry policy that is valid for gRPC is read, and its wait is not shortened.
func TestRetryPolicyOfGRPC(t *testing.T) {
	all, err := ParseServiceConfig([]byte(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "5s", "maxBackoff": "5s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`))
	if err != nil || all.Methods[""].Retry.Attempts != 3 {
		t.Errorf("%v, %v", all, err)
	}
	for max, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Minute: 10 * time.Second} {
		r := Retry{Backoff: 5 * time.Second, Max: max}
		if d := r.backoffAfter(2); d != want {
			t.Errorf("Max %v: the second wait is %v, want %v", max, d, want)
		}
	}
}
