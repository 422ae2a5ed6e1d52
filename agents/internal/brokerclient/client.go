// SPDX-License-Identifier: Apache-2.0

// Package brokerclient calls the broker. It is the only way from the agent to the broker.
package brokerclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
)

const (
	callTimeout = 15 * time.Second
	// maxBody bounds what an answer may make the agent keep: 10,000 assignments of a dozen segments are about 16 MB.
	maxBody = 32 << 20
)

// Client calls one broker. Its token never appears in an error or a log.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	local func() time.Time
}

// Options of a client.
type Options struct {
	Broker string           // http(s)://host:port
	Token  string           // the agent's own; empty before enrolment
	CAFile string           // PEM file of authorities to trust instead of the system's
	Local  func() time.Time // the local clock that the offset is estimated on
}

// New checks the address and reads the authorities.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(o.Broker, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("broker address %q: want http://HOST:PORT or https://HOST:PORT", o.Broker)
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: callTimeout,
		MaxIdleConns:          4,
		IdleConnTimeout:       90 * time.Second,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca file %s holds no PEM certificate", o.CAFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if o.Local == nil {
		o.Local = time.Now
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a token goes to no other host
	return &Client{base: base, token: o.Token, http: &http.Client{Transport: transport, CheckRedirect: refuse}, local: o.Local}, nil
}

// Exchange is the timing of one call: what the clock is estimated from.
type Exchange struct {
	Sent, Received time.Time
}

// Problem is an answer that is not a success (RFC 9457).
type Problem struct {
	Status     int
	Type       string
	Title      string
	Detail     string
	RetryAfter time.Duration
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("broker answered %d", p.Status)
	for _, s := range []string{p.Type, p.Title, p.Detail} {
		if s != "" {
			text += " " + s
		}
	}
	return text
}

// StatusOf is the HTTP status behind an error, 0 when the broker was not reached.
func StatusOf(err error) int {
	var p *Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return 0
}

// RetryAfterOf is how long the broker asked to be left alone.
func RetryAfterOf(err error) time.Duration {
	var p *Problem
	if errors.As(err, &p) {
		return p.RetryAfter
	}
	return 0
}

// Enrol trades the one-time token.
func (c *Client) Enrol(ctx context.Context, body brokerapi.EnrolBody) (brokerapi.Enrolment, Exchange, error) {
	var answer brokerapi.Enrolment
	ex, err := c.post(ctx, "/v1/agents/enrol", body, &answer)
	return answer, ex, err
}

// Report delivers reports.
func (c *Client) Report(ctx context.Context, host string, body brokerapi.ReportsBody) (brokerapi.ReportsTaken, Exchange, error) {
	var answer brokerapi.ReportsTaken
	ex, err := c.post(ctx, "/v1/agents/"+url.PathEscape(host)+"/reports", body, &answer)
	return answer, ex, err
}

// Assignments asks for the desired state. With the ETag of what the agent has, the answer is nil when nothing changed.
func (c *Client) Assignments(ctx context.Context, host, etag string) (raw []byte, newTag string, ex Exchange, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := c.request(ctx, http.MethodGet, "/v1/agents/"+url.PathEscape(host)+"/assignments", nil)
	if err != nil {
		return nil, "", ex, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	ex.Sent = c.local()
	resp, err := c.http.Do(req)
	ex.Received = c.local()
	if err != nil {
		return nil, "", ex, err
	}
	defer drain(resp.Body)
	switch resp.StatusCode {
	case http.StatusNotModified:
		return nil, etag, ex, nil
	case http.StatusOK:
		raw, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
		return raw, resp.Header.Get("ETag"), ex, err
	}
	return nil, "", ex, problem(resp)
}

func (c *Client) post(ctx context.Context, path string, body, answer any) (ex Exchange, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	payload, err := json.Marshal(body)
	if err != nil {
		return ex, err
	}
	req, err := c.request(ctx, http.MethodPost, path, bytes.NewReader(payload))
	if err != nil {
		return ex, err
	}
	req.Header.Set("Content-Type", "application/json")
	ex.Sent = c.local()
	resp, err := c.http.Do(req)
	ex.Received = c.local()
	if err != nil {
		return ex, err
	}
	defer drain(resp.Body)
	if resp.StatusCode/100 != 2 {
		return ex, problem(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(answer); err != nil {
		return ex, fmt.Errorf("answer of %s: %w", path, err)
	}
	return ex, nil
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, body)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// problem reads an error body; a body that is not problem+json still gives its status.
func problem(resp *http.Response) error {
	p := Problem{Status: resp.StatusCode, Title: http.StatusText(resp.StatusCode)}
	var body struct{ Type, Title, Detail string }
	if raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10)); err == nil && json.Unmarshal(raw, &body) == nil {
		p.Type, p.Detail = body.Type, body.Detail
		if body.Title != "" {
			p.Title = body.Title
		}
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		p.RetryAfter = time.Duration(min(s, 3600)) * time.Second
	}
	return &p
}

func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}
