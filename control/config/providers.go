package config

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// providerPrefix starts the keys of named endpoints: PARLEY_PROVIDER_NAME_FIELD.
const providerPrefix = "PARLEY_PROVIDER_"

// EndpointSettings returns the settings of a named endpoint, keyed by the last part of the key (FIELD).
func EndpointSettings() map[string]EndpointSetting {
	return map[string]EndpointSetting{
		"KIND":        {"a kind that docs/providers.md lists", func(e *endpoints.Endpoint, v string) error { e.Kind = v; return nil }},
		"URL":         {"a URL of the kind", func(e *endpoints.Endpoint, v string) error { e.URL = v; return nil }},
		"KEY":         {"a key", func(e *endpoints.Endpoint, v string) error { e.Key = media.Secret(v); return nil }},
		"KEY_FILE":    {"a file that holds the key", setKeyFile},
		"HEADERS":     {"NAME=VALUE,NAME=VALUE", setHeaders},
		"MODEL":       {"the name of a model", func(e *endpoints.Endpoint, v string) error { e.Model = v; return nil }},
		"API_VERSION": {"a version of the API", func(e *endpoints.Endpoint, v string) error { e.APIVersion = v; return nil }},
		"REGION":      {"a region of the provider", func(e *endpoints.Endpoint, v string) error { e.Region = v; return nil }},
		"FOLDER":      {"a folder ID", func(e *endpoints.Endpoint, v string) error { e.Folder = v; return nil }},
		"CONCURRENCY": {"1 to 100000", setConcurrency},
	}
}

// EndpointSetting parses one value into an endpoint.
type EndpointSetting struct {
	Accepts string
	set     func(e *endpoints.Endpoint, v string) error
}

func setKeyFile(e *endpoints.Endpoint, v string) error {
	key, err := readSecret(v)
	e.Key = media.Secret(key)
	return err
}

func setHeaders(e *endpoints.Endpoint, v string) (err error) {
	e.Header, err = parseHeaders(v)
	return err
}

// parseHeaders parses NAME=VALUE,NAME=VALUE.
func parseHeaders(v string) (http.Header, error) {
	all := http.Header{}
	for part := range strings.SplitSeq(v, ",") {
		name, value, ok := strings.Cut(part, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " :\t") {
			return nil, errors.New("invalid header") // omits the value, which may be secret
		}
		all.Set(name, strings.TrimSpace(value))
	}
	return all, nil
}

func setConcurrency(e *endpoints.Endpoint, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 100_000 {
		return fmt.Errorf("%q is out of range", v)
	}
	e.Concurrency = n
	return nil
}

// endpointSetting returns the setting for a key like PARLEY_PROVIDER_NAME_FIELD. ok is false for other keys.
func endpointSetting(key string) (s Setting, ok bool) {
	rest, ok := strings.CutPrefix(key, providerPrefix)
	if !ok || key == "PARLEY_PROVIDER_LIMITS" {
		return s, false
	}
	var name, field string // prefer the longest suffix that names a field: API_VERSION, not VERSION
	for f := range EndpointSettings() {
		if n, ok := strings.CutSuffix(rest, "_"+f); ok && len(f) > len(field) {
			name, field = n, f
		}
	}
	if field == "" {
		return s, false
	}
	setting := EndpointSettings()[field]
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	return Setting{setting.Accepts, func(c *Config, v string) error {
		if err := endpoints.CheckName(name); err != nil {
			return fmt.Errorf("name %w", err)
		}
		return c.setEndpoint(name, "", func(e *endpoints.Endpoint) error { return setting.set(e, v) })
	}}, true
}

// setEndpoint changes one endpoint. kind is empty except for the older settings, whose keys name a kind instead of an
// endpoint.
func (c *Config) setEndpoint(name, kind string, set func(e *endpoints.Endpoint) error) error {
	if c.Endpoints.Named == nil {
		c.Endpoints.Named = map[string]endpoints.Endpoint{}
	}
	e := c.Endpoints.Named[name]
	if kind != "" {
		e.Kind = kind
	}
	err := set(&e)
	c.Endpoints.Named[name] = e
	return err
}

// endpointURL returns an older setting, such as PARLEY_OPENAI_URL. It sets the URL of the endpoint that has the kind as
// its name.
func endpointURL(kind, accepts string) Setting {
	return Setting{accepts, func(c *Config, v string) error {
		return c.setEndpoint(kind, kind, func(e *endpoints.Endpoint) error {
			e.URL = v
			return endpoints.Endpoint{Kind: kind, URL: v}.Check()
		})
	}}
}

// endpointKey is like endpointURL, but for the API key.
func endpointKey(kind string) Setting {
	return Setting{"a key", func(c *Config, v string) error {
		return c.setEndpoint(kind, kind, func(e *endpoints.Endpoint) error { e.Key = media.Secret(v); return nil })
	}}
}

// finishEndpoints checks all endpoints and merges their limits into the provider limits.
func (c *Config) finishEndpoints() error {
	for name, n := range c.Endpoints.Limits() {
		if c.ProviderLimits == nil {
			c.ProviderLimits = map[string]int{}
		}
		if _, ok := c.ProviderLimits[name]; !ok {
			c.ProviderLimits[name] = n
		}
	}
	return c.Endpoints.Check()
}

// readSecret returns the content of a file without surrounding white space.
func readSecret(file string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return secret, nil
}
