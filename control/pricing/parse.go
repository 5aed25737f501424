package pricing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	maxPrices = 1000 // maximum number of entries in a file
	maxModel  = 200  // maximum number of characters in a model's name
)

type file struct {
	currency, asOf string
	perUSD         Amount // units of the currency for one US dollar; 0 if not set
	prices         []Price
}

// document is the structure of a price file in YAML.
type document struct {
	Currency string  `yaml:"currency"`
	PerUSD   decimal `yaml:"per_usd"`
	AsOf     string  `yaml:"as_of"`
	Prices   []entry `yaml:"prices"`
}

type entry struct {
	Kind     string `yaml:"kind"`
	Host     string `yaml:"host"`
	Provider string `yaml:"provider"`
	Serves   string `yaml:"serves"`
	Model    string `yaml:"model"`
	Source   string `yaml:"source"`

	PerMinute                  decimal `yaml:"per_minute"`
	PerMillionCharacters       decimal `yaml:"per_million_characters"`
	PerMillionPromptTokens     decimal `yaml:"per_million_prompt_tokens"`
	PerMillionCachedTokens     decimal `yaml:"per_million_cached_tokens"`
	PerMillionCompletionTokens decimal `yaml:"per_million_completion_tokens"`
}

// decimal is an amount in YAML; nil if the key is missing.
type decimal struct{ *Amount }

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *decimal) UnmarshalYAML(n *yaml.Node) error {
	a, err := ParseAmount(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: %q: %w", n.Line, n.Value, errAmount)
	}
	d.Amount = &a
	return nil
}

var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// parse parses a price file. Its errors name the line.
func parse(text []byte) (file, error) {
	var doc document
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return file{}, errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), " in type pricing.", " in a "), "yaml: "))
	}
	f := file{currency: doc.Currency, asOf: doc.AsOf}
	if doc.PerUSD.Amount != nil {
		if f.perUSD = *doc.PerUSD.Amount; f.perUSD == 0 {
			return file{}, errors.New("per_usd: use a number above 0")
		}
	}
	if f.currency != "" && !currencyCode.MatchString(f.currency) {
		return file{}, fmt.Errorf("currency %q: use the three letters of ISO 4217, such as EUR", f.currency)
	}
	if _, err := time.Parse(time.DateOnly, f.asOf); f.asOf != "" && err != nil {
		return file{}, fmt.Errorf("as_of %q: use a date such as 2026-11-23", f.asOf)
	}
	if len(doc.Prices) > maxPrices {
		return file{}, fmt.Errorf("%d prices: at most %d are accepted", len(doc.Prices), maxPrices)
	}
	lines := entryLines(text)
	before := map[Price]int{}
	for n, e := range doc.Prices {
		p := e.price()
		key := p
		key.Rates, key.Source = Rates{}, ""
		err := p.check()
		if other := before[key]; err == nil && other > 0 {
			err = fmt.Errorf("the same as in line %d", other)
		}
		if err != nil {
			return file{}, fmt.Errorf("line %d: %w", lines[n], err)
		}
		before[key] = lines[n]
		f.prices = append(f.prices, p)
	}
	return f, nil
}

// entryLines returns the line number of each entry. text must be valid.
func entryLines(text []byte) (lines []int) {
	var root struct {
		Prices []yaml.Node `yaml:"prices"`
	}
	if yaml.Unmarshal(text, &root) != nil {
		return nil
	}
	for _, n := range root.Prices {
		lines = append(lines, n.Line)
	}
	return lines
}

func (e *entry) price() Price {
	return Price{
		Kind: e.Kind, Host: e.Host, Provider: e.Provider, Serves: e.Serves, Model: e.Model, Source: e.Source,
		Rates: Rates{
			e.PerMinute.Amount, e.PerMillionCharacters.Amount,
			e.PerMillionPromptTokens.Amount, e.PerMillionCachedTokens.Amount, e.PerMillionCompletionTokens.Amount,
		},
	}
}

func (p *Price) check() error {
	switch {
	case (p.Kind == "") == (p.Provider == ""):
		return errors.New("set kind or provider, not both")
	case p.Host != "" && p.Provider != "":
		return errors.New("host: accepted with kind only")
	case len(p.Model) > maxModel:
		return fmt.Errorf("model: at most %d characters are accepted", maxModel)
	case strings.Contains(strings.TrimSuffix(p.Model, "*"), "*"):
		return fmt.Errorf("model %q: * is accepted at the end only", p.Model)
	}
	return p.checkRates()
}

// checkRates returns an error if a required rate is missing, or if a rate does not apply to the service.
func (p *Price) checkRates() error {
	accepted := map[**Amount]bool{} // the value is true if the rate is required
	var names string
	switch p.Serves {
	case "asr":
		accepted[&p.PerMinute] = true
		names = "per_minute"
	case "tts":
		accepted[&p.PerMillionCharacters] = true
		names = "per_million_characters"
	case "llm":
		accepted[&p.PerMillionPromptTokens], accepted[&p.PerMillionCompletionTokens], accepted[&p.PerMillionCachedTokens] = true, true, false
		names = "per_million_prompt_tokens, per_million_completion_tokens and, optionally, per_million_cached_tokens"
	default:
		return fmt.Errorf("serves %q: accepted: asr, llm, tts", p.Serves)
	}
	for _, field := range p.fields() {
		switch required, ok := accepted[field]; {
		case required && *field == nil:
			return fmt.Errorf("prices of %s: set %s", p.Serves, names)
		case !ok && *field != nil:
			return fmt.Errorf("prices of %s: only %s are accepted", p.Serves, names)
		}
	}
	return nil
}
