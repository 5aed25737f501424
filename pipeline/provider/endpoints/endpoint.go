package endpoints

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-voice/parley/media"
)

// An Endpoint is one address of a provider with its own key, limit and circuit breaker.
type Endpoint struct {
	Kind string // one of Kinds
	URL  string // empty means the default URL of the kind
	Key  media.Secret
	// Header is sent with each request; values may be secret.
	Header      http.Header
	Model       string // model of agents that name none; empty means the default of the kind
	APIVersion  string // Azure OpenAI: version of the classic API, such as "2024-10-21"; empty for v1
	Region      string // Azure Speech: region of the resource, such as "westeurope"
	Folder      string // Yandex: folder ID; not needed with a service account's key
	Concurrency int    // maximum number of concurrent streams, replies or utterances; 0 for no limit
}

// String omits the key and the headers.
func (e Endpoint) String() string { return "{" + e.Kind + " " + e.URL + "}" }

// fluxSuffix ends the name of the second recognizer of a Deepgram endpoint.
const fluxSuffix = "-flux"

// validName matches names of endpoints.
var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,38}$`)

// CheckName returns an error for names that an endpoint cannot have.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q: accepted: a letter, then at most 38 lower-case letters, digits and dashes", name)
	}
	if name == "fake" || name == "espeak" {
		return fmt.Errorf("%q: the name is taken by a built-in provider", name)
	}
	if strings.HasSuffix(name, fluxSuffix) {
		return fmt.Errorf("%q: names that end in %s are reserved for Deepgram Flux", name, fluxSuffix)
	}
	return nil
}

// Check returns what is wrong with an endpoint, as far as it can be known without
// connecting.
func (e Endpoint) Check() error {
	k, ok := Kinds()[e.Kind]
	if !ok {
		return fmt.Errorf("kind %q: accepted: %s", e.Kind, strings.Join(slices.Sorted(maps.Keys(Kinds())), ", "))
	}
	errs := []error{k.checkURL(e.URL), e.checkRegion(), e.checkHeader()}
	if k.needsRegion && e.Region == "" && e.URL == "" {
		errs = append(errs, errors.New("region is missing; the provider's console shows it"))
	}
	if e.URL == "" && !k.hasDefault && !k.needsRegion {
		errs = append(errs, errors.New("url is missing"))
	}
	if k.needsKey && e.Key == "" && e.URL == "" {
		errs = append(errs, errors.New("key is missing"))
	}
	return errors.Join(append(errs, k.checkUnused(e)...)...)
}

// checkUnused returns an error for each setting that the kind ignores.
func (k Kind) checkUnused(e Endpoint) (errs []error) {
	for _, setting := range []struct {
		name  string
		given bool
		in    func(Kind) bool
	}{
		{"headers", len(e.Header) > 0, Kind.hasHeader},
		{"model", e.Model != "", Kind.hasModel},
		{"api_version", e.APIVersion != "", func(k Kind) bool { return k.hasVersions }},
		{"region", e.Region != "", func(k Kind) bool { return k.hasRegions }},
		{"folder", e.Folder != "", func(k Kind) bool { return k.hasFolders }},
	} {
		if setting.given && !setting.in(k) {
			errs = append(errs, fmt.Errorf("%s: only these kinds have the setting: %s", setting.name, kindsWith(setting.in)))
		}
	}
	return errs
}

func (k Kind) hasModel() bool { return slices.Contains(k.Serves, "llm") }

// kindsWith lists the kinds that have a setting.
func kindsWith(has func(Kind) bool) string {
	all := Kinds()
	maps.DeleteFunc(all, func(_ string, k Kind) bool { return !has(k) })
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}

// validRegion matches regions. A region becomes part of a host name.
var validRegion = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// checkRegion returns what is wrong with the region.
func (e Endpoint) checkRegion() error {
	switch {
	case e.Region == "":
		return nil
	case e.URL != "":
		return errors.New("region: not used with a url; remove one of them")
	case !validRegion.MatchString(e.Region):
		return fmt.Errorf("region: %q: accepted: lower-case letters, digits and dashes", e.Region)
	}
	return nil
}

// checkHeader refuses headers that belong to the transport.
func (e Endpoint) checkHeader() error {
	for name := range e.Header {
		switch name = http.CanonicalHeaderKey(name); {
		case strings.HasPrefix(name, "Sec-Websocket-"),
			slices.Contains([]string{"Connection", "Content-Length", "Content-Type", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}, name):
			return fmt.Errorf("headers: %s is reserved", name)
		}
	}
	return nil
}

// checkURL returns what is wrong with the URL of an endpoint.
func (k Kind) checkURL(text string) error {
	if text == "" {
		return nil
	}
	accepted := "accepted: a URL with " + strings.Join(k.schemes, " or ") + " and a host"
	if k.paths != nil {
		accepted += ", without a path"
		if all := strings.Join(k.paths, " or "); all != "" {
			accepted += " or with " + all
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || !slices.Contains(k.schemes, u.Scheme):
		return errors.New("url: " + accepted)
	case u.User != nil:
		return errors.New("url: a password in a URL is not accepted; set the key")
	case k.paths != nil && strings.Trim(u.Path, "/") != "" && !slices.Contains(k.paths, u.Path):
		return fmt.Errorf("url: path %q: %s", u.Path, accepted)
	}
	return nil
}

// at returns the endpoint's URL with path in place of its own, or "" for the kind's
// default URL.
func (e Endpoint) at(path string) string {
	u, err := url.Parse(e.URL)
	if e.URL == "" || err != nil { // Check has refused invalid URLs
		return ""
	}
	u.Path = path
	return u.String()
}
