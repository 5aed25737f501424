package config

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// maxPricesFile is the maximum size of a price file, in bytes.
const maxPricesFile = 1 << 20

// Prices returns the built-in price list, extended by the operator's file if one is set. current returns the
// endpoints in use.
func (c *Config) Prices(current func() endpoints.Set) (*pricing.List, error) {
	l, err := pricing.BuiltIn(func(id string) pricing.Endpoint { return pricedEndpoint(current(), id) })
	if err != nil || c.PricesFile == "" {
		return l, err
	}
	text, err := readBounded(c.PricesFile, maxPricesFile)
	if err == nil {
		l, err = l.Extend(text)
	}
	if err != nil {
		return nil, fmt.Errorf("PARLEY_PRICES_FILE: %s: %w", c.PricesFile, err)
	}
	return l, nil
}

// pricedEndpoint returns the endpoint with this ID for a price list.
func pricedEndpoint(set endpoints.Set, id string) pricing.Endpoint {
	if id == "fake" || id == "espeak" {
		return pricing.Endpoint{Kind: id}
	}
	named, name := set.Named, id
	if orgID, own, ok := strings.Cut(id, "/"); ok {
		named, name = set.Organizations[orgID], own
	}
	e, ok := named[name]
	kind := e.Kind
	if !ok { // Deepgram's second recognizer has the suffix -flux
		name, _ = strings.CutSuffix(name, "-flux")
		if e = named[name]; e.Kind != "deepgram" {
			return pricing.Endpoint{}
		}
		kind = "deepgram-flux"
	}
	p := pricing.Endpoint{Kind: kind, Model: e.Model}
	if u, err := url.Parse(e.URL); err == nil && u.Hostname() != ownHost(e.Kind) {
		p.Host = u.Hostname()
	}
	return p
}

// ownHost returns the host of a kind's default URL, or "" if the kind has no default URL.
func ownHost(kind string) string {
	switch kind {
	case "openai", "responses":
		return "api.openai.com"
	case "anthropic":
		return "api.anthropic.com"
	case "gemini":
		return "generativelanguage.googleapis.com"
	case "deepgram":
		return "api.deepgram.com"
	case "assemblyai":
		return "streaming.assemblyai.com"
	case "elevenlabs":
		return "api.elevenlabs.io"
	case "cartesia":
		return "api.cartesia.ai"
	}
	return ""
}

// readBounded reads a file. It returns an error if the file has more bytes than most.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("at most %d bytes are accepted", most)
	}
	return text, err
}
