package config

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media"
)

// Traces defines where traces of calls are sent.
type Traces struct {
	URL     string       // where spans are posted; empty: traces are off
	Headers media.Secret // headers of these requests, as NAME=VALUE,NAME=VALUE
	Sample  float64      // share of the calls that are traced, 0 to 1
}

// Header returns the headers of the requests.
func (t Traces) Header() http.Header {
	h, err := parseHeaders(string(t.Headers))
	if t.Headers == "" || err != nil { // setTraceHeaders refuses invalid headers
		return http.Header{}
	}
	return h
}

// withTraces adds the settings of traces, except for the headers, which are a secret.
func withTraces(all map[string]Setting) map[string]Setting {
	all["PARLEY_OTLP_URL"] = Setting{"an http or https URL without user, query and fragment", setTraceURL}
	all["PARLEY_TRACE_SAMPLE"] = Setting{"a share, 0 to 1", setTraceSample}
	return all
}

// tracesPath is the path for spans (OpenTelemetry protocol, OTLP/HTTP).
const tracesPath = "/v1/traces"

// setTraceURL appends tracesPath, as the variable OTEL_EXPORTER_OTLP_ENDPOINT does, if the path lacks it.
func setTraceURL(c *Config, v string) error {
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("not a URL of that kind") // the URL may contain a password
	}
	if !strings.HasSuffix(u.Path, tracesPath) {
		u = u.JoinPath(tracesPath)
	}
	c.Traces.URL = u.String()
	return nil
}

func setTraceHeaders(c *Config, v string) error {
	c.Traces.Headers = media.Secret(v)
	_, err := parseHeaders(v)
	return err
}

func setTraceSample(c *Config, v string) error {
	share, err := strconv.ParseFloat(v, 64)
	if err != nil || !(share >= 0 && share <= 1) { // NaN is neither
		return fmt.Errorf("%q is out of range", v)
	}
	c.Traces.Sample = share
	return nil
}
