package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Check returns an error for each option that is out of range.
func (o Options) Check() error {
	var errs []error
	for _, x := range []struct {
		name, accepted string
		valid          bool
	}{
		{"keyterms", "at most 100 of 1 to 50 characters", areShort(o.KeyTerms, 100, 50)},
		{"languages", "at most 8 BCP 47 tags", areShort(o.Languages, 8, 35)},
		{"temperature", "0 to 2", o.Temperature == nil || *o.Temperature >= 0 && *o.Temperature <= 2},
		{"max_tokens", "1 to 100000", o.MaxTokens >= 0 && o.MaxTokens <= 100_000},
		{
			"reasoning_effort", "none, minimal, low, medium or high",
			slices.Contains([]string{"", "none", "minimal", "low", "medium", "high"}, o.ReasoningEffort),
		},
		{"speed", "0.5 to 2", o.Speed == 0 || o.Speed >= 0.5 && o.Speed <= 2},
		{"instructions", "at most 1000 characters", utf8.RuneCountInString(o.Instructions) <= 1000},
		{"options", "at most 32 parameters", len(o.Extra) <= 32},
	} {
		if !x.valid {
			errs = append(errs, fmt.Errorf("%s: accepted: %s", x.name, x.accepted))
		}
	}
	return errors.Join(errs...)
}

// areShort reports whether all has at most n texts, each of 1 to most characters.
func areShort(all []string, n, most int) bool {
	return len(all) <= n && !slices.ContainsFunc(all, func(s string) bool { return s == "" || utf8.RuneCountInString(s) > most })
}

// OptionRules states the options that a provider has. docs/providers.md is made from it.
type OptionRules struct {
	// Takes are the supported fields of Options by their JSON names, such as "keyterms".
	// "options" stands for further parameters.
	Takes []string
	// Reserved are the parameters that the client sets itself. They are refused in Extra.
	Reserved []string
	// Known are the parameters of Extra that the provider documents. Others cause a warning.
	Known []string
	// Languages are the accepted languages, BCP 47; empty means that the provider decides.
	Languages []string
}

// A RuledProvider is an optional interface of recognizers, models and voices.
type RuledProvider interface{ OptionRules() OptionRules }

// word matches a word in a name such as "callback_url" or "callbackUrl".
var word = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// namesAddressOrKey reports whether a parameter may make a provider send data elsewhere, or
// holds a key, by the words of its name.
func namesAddressOrKey(parameter string) bool {
	return slices.ContainsFunc(word.FindAllString(parameter, -1), func(w string) bool {
		return slices.Contains([]string{
			"callback", "webhook", "url", "uri", "upload", "key", "apikey", "token", "secret", "authorization",
		}, strings.ToLower(w))
	})
}

// hasAddressOrKey reports whether value contains a parameter for which namesAddressOrKey is true.
func hasAddressOrKey(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if namesAddressOrKey(name) || hasAddressOrKey(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasAddressOrKey)
	}
	return false
}

// Check returns an error for parameters that are refused, and warnings for options that
// the provider does not have.
func (r OptionRules) Check(o Options) (warnings []string, err error) {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.Extra)) {
		switch {
		case slices.Contains(r.Known, name):
		case slices.Contains(r.Reserved, name):
			errs = append(errs, fmt.Errorf("options.%s: Parley sets this parameter itself", name))
		case namesAddressOrKey(name), hasAddressOrKey(o.Extra[name]):
			errs = append(errs, fmt.Errorf("options.%s: parameters that name addresses or keys are not accepted", name))
		default:
			warnings = append(warnings, "options."+name+": unknown to Parley, passed to the provider as it is")
		}
	}
	for _, name := range o.names() {
		if !slices.Contains(r.Takes, name) {
			warnings = append(warnings, name+": the provider does not have this option, it is ignored")
		}
	}
	return warnings, errors.Join(errs...)
}

// names returns the JSON names of the options that are set.
func (o Options) names() []string {
	var all []string
	for _, x := range []struct {
		name string
		set  bool
	}{
		{"keyterms", len(o.KeyTerms) > 0},
		{"languages", len(o.Languages) > 0},
		{"temperature", o.Temperature != nil},
		{"max_tokens", o.MaxTokens != 0},
		{"reasoning_effort", o.ReasoningEffort != ""},
		{"speed", o.Speed != 0},
		{"instructions", o.Instructions != ""},
		{"options", len(o.Extra) > 0},
	} {
		if x.set {
			all = append(all, x.name)
		}
	}
	return all
}
